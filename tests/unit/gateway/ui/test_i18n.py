"""What the screens say."""

import re
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.ui.i18n import LANGUAGES, Localizer, catalogue, language_of

UI = Path("gateway/ui")


def words(language: str = "ru", zone: str = "Asia/Almaty") -> Localizer:
    return Localizer(language, ZoneInfo(zone))


def test_both_languages_say_the_same_things() -> None:
    assert catalogue("en").keys() == catalogue("ru").keys()


def test_a_plural_has_every_form_of_its_language() -> None:
    forms = {"en": 2, "ru": 3}
    for language in LANGUAGES:
        found = {key: len(said) for key, said in catalogue(language).items() if isinstance(said, list)}
        assert set(found.values()) == {forms[language]}, found


def test_phrases_name_the_same_values_in_both_languages() -> None:
    gaps = {
        language: {key: set(re.findall(r"{(\w+)}", str(said))) for key, said in catalogue(language).items()}
        for language in LANGUAGES
    }
    # "1 task" may do without its number.
    assert {key: names for key, names in gaps["en"].items() if names != gaps["ru"][key]} == {}


def test_everything_that_the_screens_ask_for_can_be_said() -> None:
    asked = {
        key
        for file in UI.rglob("*.py")
        for key in re.findall(r'(?:words|count)\(\s*"([a-z0-9_.]+)"', file.read_text(encoding="utf-8"))
    }
    assert asked - catalogue("en").keys() == set()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "1 сообщение"),
        (2, "2 сообщения"),
        (5, "5 сообщений"),
        (11, "11 сообщений"),
        (21, "21 сообщение"),
        (112, "112 сообщений"),
    ],
)
def test_russian_counts_by_its_rule(number: int, said: str) -> None:
    assert words().count("chat.messages", number) == said


def test_numbers_have_the_marks_of_the_language() -> None:
    assert words("ru").number(1842.5, 1) == "1\u202f842,5"
    assert words("en").number(1842.5, 1) == "1,842.5"


def test_times_are_those_of_whoever_looks() -> None:
    moment = datetime(2026, 11, 21, 9, 9, 8, 504_000, tzinfo=UTC)
    assert words().time(moment, with_ms=True) == "14:09:08.504"
    assert words("en", "UTC").when(moment, datetime(2026, 11, 22, 1, tzinfo=UTC)) == "yesterday"
    assert words("ru", "UTC").when(moment, datetime(2026, 11, 25, tzinfo=UTC)) == "21 ноя"


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [("ru", "en", "ru"), (None, "ru-RU,ru;q=0.9,en;q=0.8", "ru"), (None, "fr,en;q=0.5", "en"), ("xx", "", "en")],
)
def test_the_user_chooses_before_the_browser(chosen: str | None, accepted: str, language: str) -> None:
    assert language_of(chosen, accepted) == language
