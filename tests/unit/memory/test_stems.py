"""Words are known again in whichever form they come."""

import pytest

from memory.stems import questioned, stems


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Releases", "release"),
        ("документов", "документ"),
        ("ёлка", "елки"),
        ("E-MAIL", "email"),
        ("prod-7", "Prod7"),
        ("don't", "dont"),
        ("Cafe\u0301", "café"),
        ("«Документ»", "документами"),
    ],
)
def test_forms_of_a_word_are_one(one: str, other: str) -> None:
    assert set(stems(one)) & set(stems(other))


def test_parts_of_a_word_with_joints_find_it() -> None:
    assert list(stems("multilingual-e5-small"))[1:2] == ["e5"]
    assert list(stems("v2.3")) == ["v2", "3", "v23"]


def test_what_is_no_word_is_left_out() -> None:
    assert list(stems("a" * 65 + " 🙂 -- _ «»")) == []


def test_small_words_are_not_what_a_question_is_about() -> None:
    assert questioned("Где и когда будет релиз?") == {"релиз": "релиз"}
    assert questioned("Who is it?") == {"who": "Who", "is": "is", "it": "it"}
    assert questioned("?!") == {}
