"""The researcher's, the ideator's, the writer's papers."""

import pytest

from agents.models.extractive.angles import angles, lead
from agents.models.extractive.article import compose
from agents.models.extractive.ideas import chosen_angle, write_ideas
from agents.models.extractive.polish import polish
from agents.models.extractive.reading import read_source
from agents.models.extractive.report import facts_of, write_report
from language.markdown import Block, Kind, parse, render
from tests.unit.agents.briefs import ENGLISH, LINES, ONE_SENTENCE, PLAIN, RUSSIAN


def test_the_report_asks_what_the_material_leaves_open() -> None:
    report = write_report(
        read_source(
            [
                "# T\n\n## A\n\nSeveral boats use the NMEA bus. Rain fell. Why at night?\n\n"
                "## B\n\nThe bus talks to the Automatic Identification System (AIS). AIS is old. IT IS LOUD.\n\n"
                "## C\n\nBirds sing."
            ]
        )
    )
    questions = report.partition("## Open questions")[2]

    assert "> - Why at night?" in questions
    assert "How much exactly is “several”? “Several boats use the NMEA bus.”" in questions
    assert "What does “NMEA” stand for?" in questions
    assert "AIS” stand" not in questions
    assert "LOUD" not in questions
    assert "“C” has a single statement" in questions


def test_a_report_with_nothing_open_says_so() -> None:
    assert "None found" in write_report(read_source([ONE_SENTENCE]))


def test_a_report_shows_tables_as_tables() -> None:
    assert "\n>\n> | Year | Gas for the pool | Electricity for the rink |\n" in write_report(read_source([ENGLISH]))


def test_a_report_says_no_fact_twice() -> None:
    quotes = [line for line in write_report(read_source([RUSSIAN])).split("\n") if line.startswith("> - ")]

    assert len(quotes) == len(set(quotes))


def test_a_report_can_stand_in_for_the_brief() -> None:
    source = read_source([facts_of(write_report(read_source([ENGLISH])))])

    assert source.title == "The ice rink that heats a swimming pool"
    assert "What it cost and what it saves" in [theme.heading for theme in source.themes]


@pytest.mark.parametrize(
    ("text", "count"), [(ENGLISH, 3), (RUSSIAN, 3), (PLAIN, 3), (LINES, 1), (ONE_SENTENCE, 1), ("", 0)]
)
def test_there_are_three_angles_where_the_material_has_them(text: str, count: int) -> None:
    source = read_source([text])
    found = angles(source)

    assert len(found) == count
    assert len({angle.name for angle in found}) == count
    assert all(angle.quotes for angle in found)


def test_what_stands_in_the_opening_leans_on_nothing() -> None:
    for text in (ENGLISH, RUSSIAN, PLAIN):
        source = read_source([text])
        needed = {each.leans_on for each in source.passages}
        for angle in angles(source):
            assert all(each.leans_on is None and each.place not in needed for each in angle.opening)
            assert not set(angle.opening) & set(lead(source))


def test_who_is_named_by_surname_alone_is_not_moved_before_the_introduction() -> None:
    facts = "Boats are 30. Nets are 40. Piers are 50. Ropes are 60."
    source = read_source(
        [f"# T\n\n## A\n\nTomas Brandt owns 12 boats. {facts}\n\n## B\n\nBrandt pays 99 euros. Fees are 5. Tax is 7."]
    )

    moved = [each.text for angle in angles(source) for each in angle.opening]

    assert "Brandt pays 99 euros." not in moved
    assert moved


@pytest.mark.parametrize("brief", [ENGLISH, RUSSIAN])
def test_open_questions_of_the_material_stay_in_the_article(brief: str) -> None:
    source = read_source([brief])
    text = render(compose(source, angles(source)[0], 700))

    assert [each.text for each in source.passages if each.is_question and each.text not in text] == []


@pytest.mark.parametrize("paper", ["", "# Ideas without angles", "## Angle 1: Something else\n\n1. Nothing known"])
def test_a_paper_without_a_known_angle_leaves_the_choice_to_the_writer(paper: str) -> None:
    source = read_source([ENGLISH])

    assert chosen_angle(source, paper) == angles(source)[0]


def test_an_angle_that_begins_with_a_theme_puts_it_first() -> None:
    source = read_source(["# T\n\n## A\n\nBirds sing loudly.\n\n## B\n\nDogs bark at birds. Dogs sleep."])
    starting = next(angle for angle in angles(source) if angle.themes[0] == 1)
    paper = (
        write_ideas(source)
        .replace(" (recommended)", "")
        .replace(f": {starting.name}", f": {starting.name} (recommended)")
    )

    text = render(compose(source, chosen_angle(source, paper), 900))

    assert text.index("## B") < text.index("## A")


def test_an_article_on_many_sections_says_how_many_it_covers() -> None:
    sections = [f"## Part {at}\n\nFact number {at} is about {at * at} boats. It came late." for at in range(30)]
    source = read_source(["# Boats\n\n" + "\n\n".join(sections)])

    text = render(compose(source, angles(source)[0], 900))

    assert "It covers 9 of 30 sections." in text


def test_an_introduction_to_nothing_is_not_told() -> None:
    source = read_source(["# T\n\n## A\n\nBirds sing loudly.\n\n## B\n\nThree things:\n\n- Birds sing loudly.\n"])

    assert "Three things" not in render(compose(source, angles(source)[0], 900))


def test_an_article_keeps_to_its_length() -> None:
    source = read_source([" ".join(f"Fact number {at} is about {at * at} boats." for at in range(400))])

    text = render(compose(source, angles(source)[0], 300))

    assert len(text.split()) < 400


def test_a_bulky_listing_stays_in_the_brief() -> None:
    listing = "\n".join(["```", *(f"line {at}" for at in range(30)), "```"])
    source = read_source([f"# T\n\nThe tool prints lines.\n\n{listing}\n\nThen it stops."])

    assert "line 7" not in render(compose(source, angles(source)[0], 900))


def test_polishing_changes_marks_and_no_word() -> None:
    text = '# A "big" day\n\n"Go," she said - and it\'s so. See `it\'s "x"` [a](http://x/"y").\n\n```\na - "b"\n```\n'

    assert render(polish(parse(text))) == (
        '# A “big” day\n\n“Go,” she said — and it’s so. See `it\'s "x"` [a](http://x/"y").\n\n```\na - "b"\n```\n'
    )
    assert polish([Block(Kind.PROSE, 'Он сказал: "Да".')])[0].text == "Он сказал: «Да»."
    assert polish([Block(Kind.PROSE, 'A 12" pipe.')])[0].text == 'A 12" pipe.'
