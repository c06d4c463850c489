"""Material taken apart into passages."""

import pytest

from agents.models.extractive.demands import is_demand, words_asked
from agents.models.extractive.reading import read_source
from agents.models.extractive.source import Passage, Source
from language.markdown import Kind
from language.sentences import sentences
from language.words import Language
from tests.unit.agents.briefs import BULLETS, ENGLISH, LINES, MARKS, ONE_SENTENCE, PLAIN, RUSSIAN


def passage(source: Source, beginning: str) -> Passage:
    return next(each for each in source.passages if each.text.startswith(beginning))


def support(source: Source, beginning: str) -> list[str]:
    return [each.text for each in source.with_support(passage(source, beginning))]


def headings(source: Source) -> list[str]:
    return [theme.heading for theme in source.themes]


def test_a_brief_has_title_language_themes_demands() -> None:
    source = read_source([RUSSIAN])

    assert source.title == "Тетрадь, которая знает реку"
    assert source.language is Language.RUSSIAN
    assert headings(source)[:3] == ["", "Как это устроено", "Что видно по записям"]
    assert source.demands[0].startswith("Напишите статью")
    assert not any("вымышлены" in each.text for each in source.passages)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Brief: The rink\n\nIt is cold.", "The rink"),
        ("Тема: Ночной автобус\n\nАвтобус ходит ночью.", "Ночной автобус"),
        ("A short first line\n\nThen a proper sentence follows.", "A short first line"),
        ("> A motto.\n\n# The rink\n\nIt is cold.", "The rink"),
        ("## One\n\nIt is cold.\n\n## Two\n\nIt is warm.", "It is cold"),
        (ONE_SENTENCE, "The harbour froze for the first time since 1963"),
        (
            "The pool stays warm all through the long northern winter nights.",
            "The pool stays warm all through the long northern…",
        ),
        ("", ""),
    ],
)
def test_the_title_is_the_first_heading_or_what_the_text_begins_with(text: str, title: str) -> None:
    assert read_source([text]).title == title


def test_a_sentence_is_supported_by_what_it_points_at() -> None:
    source = read_source([ENGLISH])

    assert support(source, "It was turned down twice")[0].startswith("The idea came from Marta Ekholm")
    assert support(source, "The work cost") == [
        "The work cost 1.46 million euros, of which the national climate fund paid 40 percent."
    ]


def test_nothing_leans_across_a_heading() -> None:
    source = read_source(["# T\n\n## A\nThe cat sat.\n\n## B\nIt slept.\n\n### C\nIt woke.\n\n---\n\nIt left."])

    assert {each.leans_on for each in source.passages} == {None}


def test_items_hang_from_the_line_that_introduces_them() -> None:
    source = read_source([BULLETS])

    assert support(source, "студентам") == ["Билет: 60 рублей", "студентам 30"]
    assert support(source, "Напечатать") == [
        "Порядок запуска:",
        "Купить автобусы.",
        "Обучить водителей.",
        "Напечатать карты.",
    ]
    assert passage(source, "12 автобусов").leans_on is None


def test_a_listing_hangs_from_its_introduction_alone() -> None:
    source = read_source([MARKS])

    assert support(source, "```python")[-2] == "It prints a number:"
    assert passage(source, "| a |").leans_on is None
    assert [each.kind for each in source.passages].count(Kind.QUOTE) == 1


def test_what_follows_a_list_does_not_hang_from_its_introduction() -> None:
    source = read_source(["Two things:\n\n- one thing\n- another thing\n\n| a |\n|---|\n| 1 |"])

    assert passage(source, "| a").leans_on is None


def test_a_repeated_sentence_is_kept_once() -> None:
    source = read_source(["# T\n\n## A\nThe cat sat. The cat sat.\n\n## B\nThe CAT sat. Birds sing.", "The cat sat."])

    assert [each.text for each in source.passages] == ["The cat sat.", "Birds sing."]


def test_sections_of_one_name_are_one_theme() -> None:
    assert headings(read_source(["## A\nThe cat sat.\n\n## B\nBirds sing.\n\n## A\nDogs bark."])) == ["A", "B"]


def test_deep_headings_are_themes_as_long_as_they_are_few() -> None:
    few = "# T\n\n## A\n\n### A1\nThe cat sat.\n\n### A2\nBirds sing.\n\n## B\nDogs bark."
    many = few + "".join(f"\n\n### B{number}\nFact number {number}." for number in range(12))

    assert headings(read_source([few])) == ["A1", "A2", "B"]
    assert headings(read_source([many])) == ["A", "B"]


def test_the_head_of_a_document_is_not_told_to_the_reader() -> None:
    head = "# T\n\nStatus: draft\n\n- **Client:** the town\n\nThe town is small."
    text = f"{head}\n\n## A\n\nPrice: 3 euros.\n\n## B\nDogs bark."
    source = read_source([text])

    assert source.demands == ("Status: draft", "Client: the town")
    assert [each.text for each in source.passages] == ["The town is small.", "Price: 3 euros.", "Dogs bark."]


@pytest.mark.parametrize(
    "sentence",
    [
        "Write about cats.",
        "Please keep it short.",
        "Avoid jargon.",
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
    "sentence",
    [
        "Keep the door closed.",
        "Use of batteries doubled.",
        "The town writes letters.",
        "Price: 3 euros",
        "Не все дома готовы.",
        "Стоимость выросла.",
    ],
)
def test_what_is_told_about_the_subject_is_no_demand(sentence: str) -> None:
    assert not is_demand(sentence)


def test_a_list_of_demands_is_no_material() -> None:
    source = read_source(["The town is small.\n\nPlease mention:\n\n- the mayor\n- the river\n\nThe river is wide."])

    assert source.demands == ("Please mention:", "the mayor", "the river")
    assert [each.text for each in source.passages] == ["The town is small.", "The river is wide."]


@pytest.mark.parametrize(
    ("demand", "asked"),
    [
        ("Between 400 and 700 words", (400, 700)),
        ("600-800 words, plain", (600, 800)),
        ("До 1 200 слов", (900, 1200)),
        ("от 350 до 700 слов", (350, 700)),
        ("Keep it short", None),
    ],
)
def test_the_length_asked_for_is_read_from_the_demands(demand: str, asked: tuple[int, int] | None) -> None:
    assert words_asked(["No jargon", demand]) == asked


def test_a_bare_link_is_nothing_to_quote() -> None:
    source = read_source(["- [Docs](https://example.com/docs)\n- https://example.com\n- The town is small."])

    assert [each.text for each in source.passages] == ["The town is small."]


def test_questions_are_told_from_what_introduces_a_list() -> None:
    source = read_source(
        ["Who pays?\n\n- the town\n- the state\n\nThe town is small. Who else?\n\nNobody.\n\n- Will it last?"]
    )

    assert [each.text for each in source.passages if each.is_question] == ["Who else?", "Will it last?"]
    assert passage(source, "Who pays?").introduces


def test_a_text_in_one_breath_is_divided_where_its_words_change() -> None:
    source = read_source([PLAIN])

    assert len(source.themes) == 3
    assert all(theme.is_made and " · " in theme.heading for theme in source.themes)
    assert [each.text for each in source.passages] == sentences(PLAIN)


def test_paragraphs_without_headings_are_divided_between_paragraphs() -> None:
    topics = ("The ice rink is cold and the ice is thick.", "Ships load grain at the harbour quay.", "Bees make honey.")
    text = "\n\n".join(
        f"{topic} Note {number} says so. See {topic.split()[1]} {number}." for topic in topics for number in range(4)
    )
    source = read_source([text])

    assert len(source.themes) > 1
    assert all(len({each.paragraph for each in source.of_theme(at)}) >= 1 for at in range(len(source.themes)))


def test_a_short_text_without_headings_is_one_theme() -> None:
    assert headings(read_source([LINES])) == [""]


def test_a_rule_divides_a_text_without_headings_before_it() -> None:
    told = sentences(PLAIN)
    text = "\n\n---\n\n".join([" ".join(told[:12]), " ".join(told[12:])])

    assert [each.text for each in read_source([text]).passages] == sentences(PLAIN)


def test_a_list_is_not_divided_from_its_introduction() -> None:
    text = "\n\n".join(
        [PLAIN[:300], "Three things matter:", *(f"- thing number {number} is heat" for number in range(9))]
    )

    source = read_source([text])

    assert {passage(source, "thing number 0").theme} == {passage(source, "Three things").theme}


def test_tables_and_listings_weigh_less_than_sentences() -> None:
    source = read_source([MARKS + "\nThe tool reads a file, prints a number, then stops."])

    assert passage(source, "```").weight < passage(source, "The tool reads").weight
