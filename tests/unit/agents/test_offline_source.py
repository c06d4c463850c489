"""Material read into passages, and what the critic finds in a text beside it."""

import pytest

from agents.models.offline.papers import facts_of, missing_in, review, write_critique, write_report
from agents.models.offline.source import is_demand, read_source, required_length
from language.markdown import parse
from language.words import Language
from tests.unit.agents.briefs import BULLETS, ENGLISH, MARKS, ONE_SENTENCE, RUSSIAN

RINK = """# The rink

## Ice
The rink makes ice in October. It keeps the ice until April. Skaters pay 4 euros.

## Heat
Compressors throw heat away. A pipe carries the heat to the pool. The pipe is 140 metres long.
"""


def support(text: str, beginning: str) -> list[str]:
    source = read_source([text])
    passage = next(each for each in source.passages if each.text.startswith(beginning))
    return [each.text for each in source.with_support(passage)]


def flaws(text: str, brief: str | None = RINK) -> list[tuple[str, str]]:
    source = read_source([brief]) if brief else None
    return [(finding.flaw, finding.quote) for finding in review(parse(text), source)]


def test_a_brief_has_title_language_sections_demands() -> None:
    source = read_source([RUSSIAN])

    assert (source.title, source.language) == ("Тетрадь, которая знает реку", Language.RUSSIAN)
    assert source.sections[:3] == ("", "Как это устроено", "Что видно по записям")
    assert source.demands[0].startswith("Напишите статью")
    assert not any("вымышлены" in each.text for each in source.passages)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Brief: The rink\n\nIt is cold.", "The rink"),
        ("Тема: Ночной автобус\n\nАвтобус ходит ночью.", "Ночной автобус"),
        ("> A motto.\n\n# The rink\n\nIt is cold.", "The rink"),
        ("## One\n\nIt is cold.\n\n## Two\n\nIt is warm.", "It is cold"),
        (ONE_SENTENCE, "The harbour froze for the first time since 1963"),
        ("", ""),
    ],
)
def test_the_title_is_the_first_heading_or_what_the_text_begins_with(text: str, title: str) -> None:
    assert read_source([text]).title == title


def test_passages_lean_on_what_they_point_at_and_on_the_line_that_introduces_them() -> None:
    assert support(ENGLISH, "It was turned down twice")[0].startswith("The idea came from Marta Ekholm")
    assert support(BULLETS, "Напечатать") == ["Порядок запуска:", "Напечатать карты."]
    assert support(MARKS, "```python")[-2] == "It prints a number:"


def test_a_repeated_sentence_is_kept_once() -> None:
    source = read_source(["# T\n\n## A\nThe cat sat. The cat sat.\n\n## B\nThe CAT sat. Birds sing.", "The cat sat."])

    assert [each.text for each in source.passages] == ["The cat sat.", "Birds sing."]


@pytest.mark.parametrize(
    "sentence",
    [
        "Write about cats.",
        "Keep the tone plain.",
        "Audience: local councillors",
        "**Объём:** до 800 слов",
        "Напишите статью о реке.",
        "Тон спокойный, без умиления.",
        "Не используйте жаргон.",
        "The article should end with a question.",
    ],
)
def test_what_is_said_to_the_writer_is_a_demand(sentence: str) -> None:
    assert is_demand(sentence)


@pytest.mark.parametrize(
    "sentence", ["Keep the door closed.", "Use of batteries doubled.", "Price: 3 euros", "Не все дома готовы."]
)
def test_what_is_told_about_the_subject_is_no_demand(sentence: str) -> None:
    assert not is_demand(sentence)


@pytest.mark.parametrize(
    ("demand", "asked"),
    [("Between 400 and 700 words", (400, 700)), ("До 1 200 слов", (900, 1200)), ("Keep it short", None)],
)
def test_the_length_asked_for_is_read_from_the_demands(demand: str, asked: tuple[int, int] | None) -> None:
    assert required_length(["No jargon", demand]) == asked


def test_a_report_can_stand_in_for_the_brief() -> None:
    source = read_source([facts_of(write_report(read_source([ENGLISH])))])

    assert source.title == "The ice rink that heats a swimming pool"
    assert "What it cost and what it saves" in source.sections


def test_the_critic_finds_what_is_missing_repeated_long_or_of_another_length() -> None:
    long = "word " * 40

    assert flaws(RINK) == []
    assert flaws(RINK.replace("The pipe is 140 metres long.", "It is a long pipe, 140 metres of it.")) == []
    assert ("missing", "Skaters pay 4 euros.") in flaws("# The rink\n\nThe rink makes ice in October.")
    assert ("repeated", "The pipe carries heat to the pool.") in flaws(f"{RINK}\nThe pipe carries heat to the pool.\n")
    assert flaws(f"# T\n\n{long.strip()}.", brief=None) == [("long", f"{long.strip()}.")]
    assert "where the brief asks for 300–500" in write_critique(
        parse(RINK), read_source([f"{RINK}\n## Length\n\n300 to 500 words\n"])
    )


def test_a_critique_is_read_as_it_was_written() -> None:
    source = read_source([RINK])

    assert "Skaters pay 4 euros." in missing_in(write_critique(parse("# T\n\nThe rink makes ice."), source))
    assert missing_in("# Critique\n\n1. **Too dry**\n\n   > The work cost\n\n- Make it livelier.") == []
