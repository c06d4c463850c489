"""What is never to be forgotten is known by its words, in Russian as in English."""

import pytest

from bus_schema.episodes import AnchorReason
from memory.lsm.episode_updates import anchor_reason


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Привет, меня зовут Анна, я дизайнер.", AnchorReason.PROFILE),
        ("My name is Paul.", AnchorReason.PROFILE),
        ("I live in Porto with two cats", AnchorReason.PROFILE),
        ("У меня аллергия на орехи", AnchorReason.PROFILE),
        ("Всегда отвечай мне по-русски.", AnchorReason.SYSTEM),
        ("From now on always answer in one sentence.", AnchorReason.SYSTEM),
        ("Это наш главный проект на ближайшие три года", AnchorReason.PROJECT),
        ("This is a long-term project of mine", AnchorReason.PROJECT),
        ("Запомни это навсегда: код от двери 4812", AnchorReason.EXPLICIT),
        ("Пожалуйста, никогда не забывай: я не ем мясо", AnchorReason.EXPLICIT),
        ("Я предпочитаю короткие ответы", AnchorReason.PROFILE),
        ("Отныне называй меня Капитаном", AnchorReason.SYSTEM),
        ("Please always reply in English", AnchorReason.SYSTEM),
        ("I'm allergic to peanuts", AnchorReason.PROFILE),
        ("Please remember this forever: the code is 4812", AnchorReason.EXPLICIT),
        ("One more thing, remember this for ever: I am blind.", AnchorReason.EXPLICIT),
        ("Could you always remember that I am vegan?", AnchorReason.EXPLICIT),
        ("Never forget this: the boat leaves at six.", AnchorReason.EXPLICIT),
    ],
)
def test_the_four_kinds_of_anchor_are_found_by_their_words(words: str, reason: AnchorReason) -> None:
    assert anchor_reason(words) is reason


@pytest.mark.parametrize(
    "words",
    [
        "What was his name again?",
        "Как зовут твоего кота?",
        "Он всегда отвечает поздно.",
        "She always answers late.",
        "I live for music",
        "Я никогда не пишу писем",
        "Remember to buy milk",
        "I'll always remember our holiday by the sea.",
        "And remember, I am always on your side.",
        "We will never forget that summer",
        "Мы работаем над проектом",
    ],
)
def test_ordinary_words_make_no_anchor(words: str) -> None:
    assert anchor_reason(words) is None


@pytest.mark.parametrize("gap", ["\n", " ", ", ", ". "])
def test_a_long_gap_takes_no_minutes(gap: str) -> None:
    assert anchor_reason(f"Hello{gap * 100_000}there") is None


def test_white_space_makes_no_difference() -> None:
    assert anchor_reason("Hello.\n\n   Always  answer\u00a0in German.") is AnchorReason.SYSTEM
