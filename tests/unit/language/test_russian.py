"""Readings of Russian words."""

import subprocess
import sys

import pytest

from language.russian import fold_yo, nominative, word_forms


@pytest.mark.parametrize(
    ("word", "lemma", "grammemes"),
    [
        ("напомни", "напомнить", ("VERB", "impr")),
        ("Отправлю", "отправить", ("VERB", "futr", "1per", "sing")),
        ("надо", "надо", ("PRED",)),
        ("Гульнаре", "гульнара", ("Name", "datv")),
        ("подписан", "подписать", ("PRTS", "past")),
    ],
)
def test_a_word_has_its_dictionary_form_and_its_grammemes(word: str, lemma: str, grammemes: tuple[str, ...]) -> None:
    first = word_forms(word)[0]

    assert first.lemma == lemma
    assert first.has(*grammemes)


def test_what_is_no_russian_word_has_a_reading_too() -> None:
    assert word_forms("Kubernetes")
    assert not word_forms("пжл")[0].has("VERB")


@pytest.mark.parametrize(
    ("word", "grammeme", "expected"),
    [("Сергеевны", "Patr", "сергеевна"), ("Эльдару", "Name", "эльдар"), ("слово", "Name", "слово")],
)
def test_names_are_put_into_the_nominative(word: str, grammeme: str, expected: str) -> None:
    assert nominative(word, grammeme) == expected


def test_yo_is_written_or_not() -> None:
    assert fold_yo("Учтём") == fold_yo("учтем")


def test_an_english_text_does_not_load_the_dictionary() -> None:
    program = """
import sys
from datetime import UTC, datetime
from agents.annotation import SpokenMessage, annotate
message = SpokenMessage(text="I'll send Kate the invoice tomorrow.", user="anna", at=datetime.now(UTC))
assert annotate(message).tasks
assert "pymorphy3" not in sys.modules
"""

    subprocess.run([sys.executable, "-c", program], check=True)
