"""Dates as people say them, in English and Russian, reckoned from Wednesday, 11 March 2026, 10:30 in Moscow."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from language.dates.expressions import dates_in, without_dates

NOW = datetime(2026, 3, 11, 10, 30, tzinfo=ZoneInfo("Europe/Moscow"))

DAYS = {
    "до пятницы": "03-13",
    "завтра": "03-12",
    "послезавтра": "03-13",
    "через 3 дня": "03-14",
    "через неделю": "03-18",
    "через пару дней": "03-13",
    "в следующий вторник": "03-17",
    "в среду": "03-18",
    "15 марта": "03-15",
    "двадцать пятого марта": "03-25",
    "к 20-му": "03-20",
    "5 числа": "04-05",
    "до 15.04": "04-15",
    "до 31.12.2026": "12-31",
    "на 25.12": "12-25",
    "до 25.": "03-25",
    "25.12": "12-25",
    "15.04.26": "04-15",
    "до конца недели": "03-13",
    "на следующей неделе": "03-20",
    "в начале недели": "03-16",
    "к концу месяца": "03-31",
    "до конца апреля": "04-30",
    "до конца квартала": "03-31",
    "by Friday": "03-13",
    "tomorrow": "03-12",
    "the day after tomorrow": "03-13",
    "in two weeks": "03-25",
    "within 3 days": "03-14",
    "a week from now": "03-18",
    "next Tuesday": "03-17",
    "March 20": "03-20",
    "20th of March": "03-20",
    "the 20th": "03-20",
    "3/15": "03-15",
    "15/3/2026": "03-15",
    "2026-04-01": "04-01",
    "end of the month": "03-31",
    "early next week": "03-16",
    "by the end of next week": "03-20",
    "before EOW": "03-13",
    "a week on Tuesday": "03-24",
    "Friday week": "03-20",
    "a week tomorrow": "03-19",
    "Friday next week": "03-20",
    "next week on Friday": "03-20",
    "in a fortnight": "03-25",
    "this weekend": "03-14",
    "by the weekend": "03-13",
    "tmrw": "03-12",
    "2moro": "03-12",
    "on sat": "03-14",
    "by month end": "03-31",
    "mid April": "04-15",
    "before May": "04-30",
    "by Easter": "04-05",
    "before Christmas": "12-24",
    "by the 31st": "03-31",
    "the 1st of next month": "04-01",
    "во вторник на следующей неделе": "03-17",
    "на следующей неделе в пятницу": "03-20",
    "на выходных": "03-14",
    "до выходных": "03-13",
    "в пт": "03-13",
    "ко вт": "03-17",
    "тридцатого": "03-30",
    "к первому": "04-01",
    "пятого числа": "04-05",
    "к середине апреля": "04-15",
    "сдам 24.03": "03-24",
    "к Новому году": "12-31",
    "не позднее среды": "03-18",
    "doing it sat": "03-14",
    "bring them sun, ok": "03-15",
    "24.11 is the last day": "11-24",
    "by 12.04 please": "04-12",
    "two weeks on Friday": "03-27",
    "in two weeks' time": "03-25",
}
MOMENTS = {
    "завтра в 15:00": "03-12 15:00",
    "завтра в 7:30 вечера": "03-12 19:30",
    "в 3:30 дня": "03-11 15:30",
    "в 11 ночи": "03-11 23:00",
    "в двенадцать ночи": "03-12 00:00",
    "15.12 в 10:00": "12-15 10:00",
    "через 2 часа 30 минут": "03-11 13:00",
    "через 1,5 часа": "03-11 12:00",
    "через час с половиной": "03-11 12:00",
    "in an hour and a half": "03-11 12:00",
    "in 1 hour 30 minutes": "03-11 12:00",
    "к пятнице утром": "03-13 10:00",
    "с утра в понедельник": "03-16 10:00",
    "15.04.2026 в 10 утра": "04-15 10:00",
    "в 3 часа дня": "03-11 15:00",
    "к 18 часам завтра": "03-12 18:00",
    "сегодня вечером": "03-11 19:00",
    "к 9 утра": "03-12 09:00",
    "через полчаса": "03-11 11:00",
    "до конца дня": "03-11 18:00",
    "tomorrow at 3pm": "03-12 15:00",
    "by EOD Friday": "03-13 18:00",
    "by 17:30 on Thursday": "03-12 17:30",
    "Mar 14, 2026 at 9:30 am": "03-14 09:30",
    "tonight at 8pm": "03-11 20:00",
    "tonight": "03-11 21:00",
    "by noon": "03-11 12:00",
    "on Monday morning": "03-16 10:00",
    "in half an hour": "03-11 11:00",
    "first thing tomorrow": "03-12 10:00",
    "Monday 9 sharp": "03-16 09:00",
    "quarter to seven tonight": "03-11 18:45",
    "at seven tomorrow evening": "03-12 19:00",
    "tomorrow evening at 7": "03-12 19:00",
    "sat 5pm": "03-14 17:00",
    "be there @ 5": "03-11 17:00",
    "by the end of your shift": "03-11 18:00",
    "к трём": "03-11 15:00",
    "занеси вечерком": "03-11 19:00",
    "до конца смены": "03-11 18:00",
    "at half seven tomorrow": "03-12 07:30",
    "quarter to four": "03-11 15:45",
    "ten past six": "03-11 18:10",
    "in 20 mins": "03-11 10:50",
    "this evening at 8": "03-11 20:00",
    "by 3 this afternoon": "03-11 15:00",
    "at 4.30": "03-11 16:30",
    "on Friday at ten": "03-13 10:00",
    "at 7ish tomorrow": "03-12 07:00",
    "в полседьмого": "03-11 18:30",
    "в половине седьмого": "03-11 18:30",
    "завтра без пятнадцати девять": "03-12 08:45",
    "в четверть пятого": "03-11 16:15",
    "в семь вечера": "03-11 19:00",
    "завтра к девяти": "03-12 09:00",
    "в час дня": "03-11 13:00",
    "в два": "03-11 14:00",
}
NO_DATES = [
    "версия 2.10",
    "в два раза быстрее",
    "на пятом этаже",
    "пятого игрока заменили",
    "she sat by the window",
    "we sat in the sun",
    "it costs 26.11 euro",
    "к пяти новым задачам",
    "at one point",
    "рост 3.05%",
    "по понедельникам",
    "в среде разработки",
    "в прошлую пятницу",
    "каждый вторник",
    "с днём рождения",
    "31 февраля",
    "через 999 месяцев",
    "25:00",
    "last Friday",
    "every Monday",
    "I may 3 times",
    "at 5 percent",
    "Sat on the sofa",
    "9999-12-31",
    "room 3/45/67/8",
    "",
]


@pytest.mark.parametrize("said", DAYS)
def test_a_day_ends_at_midnight(said: str) -> None:
    (found,) = dates_in(said, NOW)

    assert found.at.strftime("%m-%d %H:%M:%S") == f"{DAYS[said]} 23:59:59"
    assert not found.has_time


@pytest.mark.parametrize("said", MOMENTS)
def test_a_time_is_kept(said: str) -> None:
    (found,) = dates_in(said, NOW)

    assert found.at.strftime("%m-%d %H:%M") == MOMENTS[said]
    assert found.has_time


@pytest.mark.parametrize("said", NO_DATES)
def test_what_only_looks_like_a_date_is_none(said: str) -> None:
    assert dates_in(said, NOW) == []


def test_a_year_that_nobody_named_is_the_likelier_one() -> None:
    before_christmas = datetime(2026, 12, 20, tzinfo=UTC)

    assert dates_in("до 15 января", before_christmas)[0].at.year == 2027
    assert dates_in("by December 15", before_christmas)[0].at.year == 2026


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("call at 7", "03-11 19:00"),
        ("сегодня в 9 часов", "03-11 21:00"),
        ("call at 9 am", "03-12 09:00"),
        ("this afternoon", "03-11 23:59"),
        ("к концу смены", "03-11 18:00"),
    ],
)
def test_an_hour_that_has_passed_by_the_afternoon_is_in_the_evening(text: str, due: str) -> None:
    (date,) = dates_in(text, NOW.replace(hour=15, minute=30))

    assert date.at.strftime("%m-%d %H:%M") == due


def test_a_weekday_said_on_that_day_is_the_next_one() -> None:
    assert dates_in("в среду", NOW)[0].at.day == 18
    assert dates_in("on Wednesday", NOW)[0].at.day == 18


def test_the_end_of_the_week_is_friday_unless_that_has_passed() -> None:
    saturday = datetime(2026, 3, 14, 12, tzinfo=UTC)

    assert dates_in("до конца недели", NOW)[0].at.day == 13
    assert dates_in("by the end of the week", saturday)[0].at.day == 15


def test_several_dates_are_found_in_order_each_with_its_words() -> None:
    text = "Черновик до пятницы, финал 20 марта в 18:00."

    found = dates_in(text, NOW)

    assert [each.text for each in found] == ["пятницы", "20 марта в 18:00"]
    assert [text[each.start : each.end] for each in found] == [each.text for each in found]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Отправлю отчёт Ирине до пятницы.", "Отправлю отчёт Ирине."),
        ("К пятнице подготовлю смету", "подготовлю смету"),
        ("I'll send the report to Ann by Friday at 3pm, promise.", "I'll send the report to Ann, promise."),
        ("Tomorrow I'll call the bank", "I'll call the bank"),
        ("No date here", "No date here"),
    ],
)
def test_a_text_can_be_had_without_its_dates(text: str, rest: str) -> None:
    assert without_dates(text, dates_in(text, NOW)) == rest


def test_the_dates_are_those_of_the_speakers_own_calendar() -> None:
    late_in_london = datetime(2026, 3, 11, 22, 30, tzinfo=UTC)
    in_moscow = late_in_london.astimezone(ZoneInfo("Europe/Moscow"))

    assert dates_in("завтра", late_in_london)[0].at.day == 12
    assert dates_in("завтра", in_moscow)[0].at.day == 13


@given(st.text(max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    for found in dates_in(text, NOW):
        assert text[found.start : found.end].strip() == found.text
        assert abs(found.at - NOW) < timedelta(days=21 * 366)


@given(st.lists(st.sampled_from([*DAYS, *MOMENTS, *NO_DATES, "at", "в", ","]), max_size=6).map(" ".join))
@example("tomorrow evening at 7 tonight at 8pm")
@example("on Friday at ten tonight")
def test_dates_that_stand_together_never_overlap(text: str) -> None:
    found = dates_in(text, NOW)

    assert all(first.end <= second.start for first, second in pairwise(found))
    assert without_dates(text, found) is not None
