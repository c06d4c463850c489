"""What the critic finds, what the editor does about it."""

import pytest

from agents.models.extractive.critique import findings_in, write_critique
from agents.models.extractive.editing import apply, insert, remove_last
from agents.models.extractive.form import mend, remarks_on
from agents.models.extractive.reading import read_source
from agents.models.extractive.review import Fault, Finding, review
from agents.models.extractive.splitting import split
from language.markdown import parse, render

BRIEF = """# The rink

## Ice
The rink makes ice in October. It keeps the ice until April. Skaters pay 4 euros.

Children skate for free on Sundays.

## Heat
Compressors throw heat away. A pipe carries the heat to the pool. The pipe is 140 metres long.

## Money
The work cost 1.4 million euros.
"""
NOTE = "\n---\n\n*This article organises and quotes.*\n"
LONG = (
    "The council met in May, in the old town hall beside the river, and it talked for nine hours about the pipe, the "
    "pump, the pool, the library, the school; the mayor abstained, because his brother sells pumps to half the county."
)


def faults(text: str, brief: str | None = BRIEF) -> list[tuple[Fault, str]]:
    source = read_source([brief]) if brief else None
    return [(each.fault, each.quote or each.section) for each in review(parse(text), source).findings]


def edited(text: str, *findings: Finding, brief: str | None = BRIEF) -> str:
    return render(apply(findings, parse(text), read_source([brief]) if brief else None))


def test_a_faithful_text_has_no_faults() -> None:
    assert faults(BRIEF) == []


def test_facts_that_the_text_leaves_out_are_missing_the_weightiest_first() -> None:
    found = faults("# The rink\n\n## Ice\n\nThe rink makes ice in October. It keeps the ice until April.\n" + NOTE)

    assert (Fault.MISSING, "The work cost 1.4 million euros.") in found
    assert len(found) == 6


def test_there_is_no_more_missing_than_there_is_room_for() -> None:
    brief = BRIEF + "\n## Length\n\n10 to 16 words\n"
    text = "# The rink\n\n---\n\nSkaters pay 4 euros. Ice is cold.\n" + NOTE

    assert [quote for fault, quote in faults(text, brief) if fault is Fault.MISSING] == [
        "The work cost 1.4 million euros."
    ]


def test_a_fact_told_in_other_words_is_not_missing() -> None:
    text = BRIEF.replace("The pipe is 140 metres long.", "It is a long pipe, 140 metres of it.")

    assert faults(text) == []


def test_what_the_material_does_not_say_is_unsupported() -> None:
    invented = "Penguins from the southern hemisphere invaded the cafeteria."

    assert faults(BRIEF.replace("Compressors", f"{invented} Compressors")) == [(Fault.UNSUPPORTED, invented)]


def test_what_is_said_again_is_repeated() -> None:
    again = "The pipe carries heat to the pool."

    assert faults(BRIEF + f"\n{again}\n") == [(Fault.REPEATED, again)]


def test_a_long_sentence_is_found_without_any_material() -> None:
    assert faults(f"# T\n\n{LONG}", brief=None) == [(Fault.LONG, LONG)]


def test_a_text_that_stands_alone_must_leave_nothing_to_guess() -> None:
    text = "Several **boats** use the NMEA bus. The bus talks to Automatic Identification (AIS)."

    assert faults(text, brief=None) == [
        (Fault.VAGUE, "Several **boats** use the NMEA bus."),
        (Fault.UNEXPLAINED, "Several **boats** use the NMEA bus."),
    ]
    paper = write_critique(parse(text), None)
    assert paper.startswith("# Critique: Several boats use the NMEA bus\n")
    assert "Fix: say what “NMEA” stands for." in paper
    assert "statements of the material" not in paper


def test_a_section_that_outweighs_all_others_is_heavy() -> None:
    text = "# T\n\n## A\n\nShort.\n\n## B\n\n" + " ".join(
        f"Sentence number {at} is about {at * 7}." for at in range(60)
    )

    assert faults(f"{text}\n\n## C\n\nShort too.", brief=None) == [(Fault.HEAVY, "B")]


def test_a_text_of_another_length_than_asked_is_told_the_numbers() -> None:
    brief = BRIEF + "\n## Length\n\n300 to 500 words\n"
    paper = write_critique(parse(BRIEF), read_source([brief]))

    assert "where the brief asks for 300–500" in paper
    assert [each.fault for each in findings_in(paper)] == []


def test_the_note_on_sources_is_no_part_of_the_text() -> None:
    assert faults(BRIEF + NOTE.replace("organises", "invents penguins, walruses, icebergs")) == []


@pytest.mark.parametrize(
    "finding",
    [
        Finding(Fault.MISSING, "The work cost 1.4 million euros."),
        Finding(Fault.MISSING, "| a | b |\n|---|---|\n| 1 | 2 |"),
        Finding(Fault.LONG, LONG),
    ],
)
def test_a_critique_is_read_as_it_was_written(finding: Finding) -> None:
    text = f"# T\n\n{finding.quote}" if finding.fault is Fault.LONG else "# T\n\nCompressors throw heat away."
    source = read_source([f"# T\n\n{finding.quote}\n\nCompressors throw heat away."])

    found = findings_in(write_critique(parse(text), source))

    assert (finding.fault, finding.quote) in [(each.fault, each.quote) for each in found]


def test_a_critique_in_free_words_asks_for_nothing_that_could_be_computed() -> None:
    assert findings_in("# Critique\n\n1. **Too dry**\n\n   > The work cost\n\n- Make it livelier.") == []


def test_a_sentence_without_a_safe_place_is_left_to_a_person() -> None:
    whole = LONG.replace(";", " while")

    assert "shorten it by hand" in write_critique(parse(f"# T\n\n{whole}"), None)
    assert split(whole) == [whole]


def test_what_is_missing_goes_where_the_material_has_it() -> None:
    text = "# The rink\n\n## Ice\n\nThe rink makes ice in October. Skaters pay 4 euros.\n" + NOTE

    within = edited(text, Finding(Fault.MISSING, "It keeps the ice until April."))
    below = edited(text, Finding(Fault.MISSING, "Children skate for free on Sundays."))

    assert "The rink makes ice in October. It keeps the ice until April. Skaters pay 4 euros.\n" in within
    assert "Skaters pay 4 euros.\n\nChildren skate for free on Sundays.\n\n---" in below


def test_what_is_missing_brings_along_what_it_leans_on() -> None:
    text = "# The rink\n\n## Ice\n\nSkaters pay 4 euros.\n"

    assert "## Ice\n\nThe rink makes ice in October. It keeps the ice until April.\n\nSkaters pay" in edited(
        text, Finding(Fault.MISSING, "It keeps the ice until April.")
    )


def test_a_missing_section_comes_in_its_place() -> None:
    text = "# The rink\n\n## Ice\n\nSkaters pay 4 euros.\n\n## Money\n\nThe work cost 1.4 million euros.\n"

    assert "euros.\n\n## Heat\n\nThe pipe is 140 metres long.\n\n## Money" in edited(
        text, Finding(Fault.MISSING, "The pipe is 140 metres long.")
    )
    assert edited("# The rink\n\nIce.\n" + NOTE, Finding(Fault.MISSING, "The work cost 1.4 million euros.")) == (
        "# The rink\n\nIce.\n\n## Money\n\nThe work cost 1.4 million euros.\n" + NOTE
    )


def test_an_introduction_is_put_before_the_first_section() -> None:
    brief = "# T\n\nThe town is small. Dogs bark.\n\n## A\n\nBirds sing.\n\n## B\n\nBees hum.\n"
    source = read_source([brief])

    assert render(insert(parse("# T\n\n## A\n\nBirds sing.\n"), source.passages[0], source)).startswith(
        "# T\n\nThe town is small.\n\n## A"
    )
    assert render(insert(parse("Birds sing.\n"), source.passages[0], source)) == "The town is small.\n\nBirds sing.\n"


def test_what_is_there_already_is_not_put_in_again() -> None:
    assert edited(BRIEF, Finding(Fault.MISSING, "Skaters pay 4 euros."), Finding(Fault.MISSING, "Nobody knows.")) == (
        render(parse(BRIEF))
    )


def test_what_is_repeated_goes_where_it_stands_last() -> None:
    text = BRIEF + "\nSkaters pay 4 euros. The end.\n"

    assert edited(text, Finding(Fault.REPEATED, "Skaters pay 4 euros.")) == render(parse(BRIEF + "\nThe end.\n"))


def test_a_section_that_loses_its_last_sentence_goes_too() -> None:
    text = BRIEF + "\n## Birds\n\n### Penguins\n\nPenguins came.\n" + NOTE

    assert edited(text, Finding(Fault.UNSUPPORTED, "Penguins came.")) == render(parse(BRIEF + NOTE))


def test_what_is_not_in_the_text_cannot_be_removed() -> None:
    assert remove_last(parse(BRIEF), "Nobody said this.") == parse(BRIEF)


def test_a_long_sentence_is_split_without_losing_a_word() -> None:
    text = f"# T\n\nBefore. {LONG} After.\n\n- {LONG}\n"

    result = edited(text, Finding(Fault.LONG, LONG), brief=None)

    assert result.count("the school. The mayor abstained") == 2
    assert "Before. The council" in result


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (
            "Зимой лёд держит грузовики до самого апреля, но весной по реке ходить больше нельзя.",
            ["Зимой лёд держит грузовики до самого апреля.", "Но весной по реке ходить больше нельзя."],
        ),
        ("One two three four five six; seven, but eight.", ["One two three four five six; seven, but eight."]),
        (
            "The pipe (it is quite long and cold; nobody sees it at all under the street) works well.",
            ["The pipe (it is quite long and cold; nobody sees it at all under the street) works well."],
        ),
    ],
)
def test_a_sentence_is_split_only_where_both_halves_stand_alone(sentence: str, parts: list[str]) -> None:
    assert split(sentence) == parts


def test_findings_without_material_to_draw_on_change_nothing() -> None:
    missing = Finding(Fault.MISSING, "Skaters pay 4 euros.")

    assert edited("# T\n\nIce.\n", missing, Finding(Fault.HEAVY, section="Ice"), brief=None) == "# T\n\nIce.\n"


def test_mending_puts_right_whatever_was_remarked_on() -> None:
    source = read_source([BRIEF + "\n## Length\n\nFrom 50 to 90 words\n"])
    poor = parse(
        "The rink makes ice in October. The rink makes ice in October.\n\n## Heat\n\nCompressors throw heat away.\n"
    )

    remarked = remarks_on(poor, source)
    mended = mend(poor, source)

    assert len(remarked) == 5
    assert remarks_on(mended, source) == []
    assert render(mended).startswith("# The rink\n")
    assert mend(mended, source) == mended


def test_a_long_paragraph_is_divided_between_sentences() -> None:
    told = " ".join(f"Sentence number {at} is as long as most of the others are." for at in range(30))
    source = read_source([f"# T\n\n{told}"])

    paragraphs = [block for block in mend(parse(f"# T\n\n{told}"), source) if block.text.startswith("Sentence")]

    assert len(paragraphs) > 3
    assert all(len(block.text.split()) <= 90 for block in paragraphs)
    assert " ".join(block.text for block in paragraphs) == told
