"""How a text sounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tone.hearing import Tone, together, tone_of
from tests.unit.agents.mood_talk import DEVELOPMENT, HELD_OUT

PLAIN = 0.15


def sign_of(text: str) -> int:
    value = tone_of(text).value
    return 0 if abs(value) < PLAIN else 1 if value > 0 else -1


@pytest.mark.parametrize(("text", "sign"), [*DEVELOPMENT, *HELD_OUT])
def test_a_text_sounds_glad_or_upset_or_plain(text: str, sign: int) -> None:
    assert sign_of(text) == sign, tone_of(text)


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("Мне нравится план.", "Мне очень нравится план."),
        ("Это плохо.", "Это ПЛОХО!!!"),
        ("Я устала.", "Я ужасно устала."),
        ("Я немного устала.", "Я устала."),
        ("Спасибо", "Спасибо 🎉"),
        ("I'm a bit worried.", "I'm worried."),
        ("I'm worried.", "I'm extremely worried!"),
        ("It's sad", "It's SAD"),
    ],
)
def test_what_makes_a_feeling_stronger_is_heard(weaker: str, stronger: str) -> None:
    assert abs(tone_of(weaker).value) < abs(tone_of(stronger).value)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("Клиент недоволен, сервер сломался 😡", {"недоволен", "сломался", "😡"}),
        ("Не нравится мне это", {"нравится"}),
        ("I'm fed up with this nightmare", {"fed up", "nightmare"}),
        ("Встреча завтра в десять", set()),
    ],
)
def test_a_tone_names_the_words_that_it_was_heard_in(text: str, evidence: set[str]) -> None:
    assert set(tone_of(text).evidence) == evidence


def test_a_negated_feeling_is_a_weaker_one_of_the_other_kind() -> None:
    assert 0 > tone_of("Мне не нравится").value > -tone_of("Мне нравится").value
    assert tone_of("It's not a problem").value > 0


def test_of_several_texts_the_last_count_for_more_and_plain_ones_hardly() -> None:
    glad, upset, plain = tone_of("Отлично!"), tone_of("Ужас!"), tone_of("Встреча в десять.")

    assert together([upset, glad]).value > together([glad, upset]).value
    assert together([glad, plain]).value > 0.6 * glad.value
    assert together([]) == Tone(0.0)


@given(st.text(max_size=200))
def test_any_text_has_a_tone(text: str) -> None:
    tone = tone_of(text)

    assert -1 <= tone.value <= 1
    assert bool(tone.value) <= bool(tone.evidence)
