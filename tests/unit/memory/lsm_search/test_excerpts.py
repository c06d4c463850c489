"""A long turn is shown by the passage that the question is about."""

from language.words import query_stems
from memory.lsm.search.ranking import EXCERPT_WORDS
from memory.lsm.search.results import excerpt

FILLER = "This sentence says nothing in particular about anything at all. "


def passage(text: str, question: str) -> str:
    return excerpt(text, dict.fromkeys(query_stems(question), 1.0))


def test_the_passage_with_the_words_of_the_question_is_shown_from_the_beginning_of_a_sentence() -> None:
    text = 30 * FILLER + "The side door opens with 4471.\nAsk Boris for the key. " + 30 * FILLER

    shown = passage(text, "What is the code of the side door?")

    assert "The side door opens with 4471.\nAsk Boris for the key." in shown
    assert (shown[0], shown[-1]) == ("…", "…")
    assert len(shown.split()) == EXCERPT_WORDS
    assert shown.strip("…") in text


def test_the_beginning_is_shown_where_the_question_has_no_word_of_the_text() -> None:
    text = "To begin with. " + 40 * FILLER

    assert passage(text, "zebra").startswith("To begin with.")


def test_a_passage_at_the_end_is_as_long_as_any() -> None:
    text = 40 * FILLER + "At last: the zebra."

    shown = passage(text, "zebra")

    assert shown.endswith("At last: the zebra.")
    assert len(shown.split()) == EXCERPT_WORDS


def test_words_of_the_question_that_are_elsewhere_too_count_once() -> None:
    text = "Paint paint paint paint. " + 30 * FILLER + "The paint was from Riga. " + 30 * FILLER

    assert "from Riga" in passage(text, "Is the paint from Riga?")


def test_a_short_text_and_one_without_sentences_are_shown_as_they_are() -> None:
    assert passage("Four words of text", "text") == "Four words of text"
    assert len(passage("word " * 500, "word").split()) == EXCERPT_WORDS
    assert passage("x" * 5000, "word") == "x" * 5000
