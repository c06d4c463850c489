"""Forms of Russian verbs."""

import subprocess
import sys

import pytest

from language.russian import fold_yo, verb_forms


@pytest.mark.parametrize(
    ("infinitive", "first", "third", "plural", "imperatives"),
    [
        ("отправить", "отправлю", "отправит", "отправим", ("отправь", "отправьте")),
        ("созвониться", "созвонюсь", "созвонится", "созвонимся", ("созвонись", "созвонитесь")),
        ("передать", "передам", "передаст", "передадим", ("передай", "передайте")),
        ("заехать", "заеду", "заедет", "заедем", ("заезжай", "заезжайте")),
        ("писать", "пишу", "пишет", "пишем", ("пиши", "пишите")),
    ],
)
def test_a_verb_has_the_forms_that_promise_and_ask(
    infinitive: str, first: str, third: str, plural: str, imperatives: tuple[str, ...]
) -> None:
    (verb,) = verb_forms([infinitive])

    assert (verb.first, verb.third, verb.plural, verb.imperatives) == (first, third, plural, imperatives)


@pytest.mark.parametrize(
    ("infinitive", "pasts", "participles"),
    [
        ("найти", {"нашёл", "нашла", "нашло", "нашли"}, {"найден", "найдена", "найдено", "найдены"}),
        ("помочь", {"помог", "помогла", "помогло", "помогли"}, set()),
        ("спланировать", {"спланировал", "спланировала", "спланировало", "спланировали"}, {
            "спланирован", "спланирована", "спланировано", "спланированы",
        }),
    ],
)  # fmt: skip
def test_a_verb_has_the_forms_that_report(infinitive: str, pasts: set[str], participles: set[str]) -> None:
    (verb,) = verb_forms([infinitive])

    assert set(verb.pasts) == pasts
    assert set(verb.participles) == participles


def test_what_is_no_verb_is_refused() -> None:
    with pytest.raises(ValueError, match="берёза"):
        verb_forms(["берёза"])


def test_yo_is_written_or_not() -> None:
    assert fold_yo("Учтём") == fold_yo("учтем")


def test_an_english_text_does_not_load_the_dictionary() -> None:
    program = """
import sys
from datetime import UTC, datetime
from agents.task_manager.status_reports import find_reports
from agents.task_manager.extraction import task_patterns
from language.words import Language
task_patterns(Language.ENGLISH)
assert "pymorphy3" not in sys.modules
"""

    subprocess.run([sys.executable, "-c", program], check=True)
