"""How a text sounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tone import ToneAnalysis, analyse_tone, combine_tones
from tests.unit.agents.mood_talk import DEVELOPMENT, HELD_OUT

PLAIN = 0.15


def sign_of(text: str) -> int:
    value = analyse_tone(text).value
    return 0 if abs(value) < PLAIN else 1 if value > 0 else -1


@pytest.mark.parametrize(("text", "sign"), [*DEVELOPMENT, *HELD_OUT])
def test_a_text_sounds_glad_or_upset_or_plain(text: str, sign: int) -> None:
    assert sign_of(text) == sign, analyse_tone(text)


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
    assert abs(analyse_tone(weaker).value) < abs(analyse_tone(stronger).value)


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
    assert set(analyse_tone(text).evidence) == evidence


def test_a_negated_feeling_is_a_weaker_one_of_the_other_kind() -> None:
    assert 0 > analyse_tone("Мне не нравится").value > -analyse_tone("Мне нравится").value
    assert analyse_tone("It's not a problem").value > 0


def test_of_several_texts_the_last_count_for_more_and_plain_ones_hardly() -> None:
    glad, upset, plain = analyse_tone("Отлично!"), analyse_tone("Ужас!"), analyse_tone("Встреча в десять.")

    assert combine_tones([upset, glad]).value > combine_tones([glad, upset]).value
    assert combine_tones([glad, plain]).value > 0.6 * glad.value
    assert combine_tones([]) == ToneAnalysis(0.0)


@given(st.text(max_size=200))
def test_any_text_has_a_tone(text: str) -> None:
    tone = analyse_tone(text)

    assert -1 <= tone.value <= 1
    assert bool(tone.value) <= bool(tone.evidence)
