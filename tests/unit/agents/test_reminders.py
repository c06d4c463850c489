"""Reminders: what is asked for, when it is told, in which words."""

from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agents.due import NoDate, parse_due
from agents.reminder_requests import find_reminders, reminder_flaw
from agents.reminders import (
    ReaderClock,
    digest_of,
    is_at_minute,
    next_reminder,
    reminder_of,
)
from bus_schema.notification import Urgency
from bus_schema.processing import Task

MOSCOW = ZoneInfo("Europe/Moscow")
# A Monday.
NOW = datetime(2026, 11, 23, 10, 5, tzinfo=MOSCOW)
CLOCK = ReaderClock(MOSCOW)


@pytest.mark.parametrize(
    ("text", "what", "when"),
    [
        ("Напомни через 2 минуты выключить чайник", "Выключить чайник", "2026-11-23 10:07"),
        ("Remind me in 2 minutes to turn off the kettle", "Turn off the kettle", "2026-11-23 10:07"),
        ("Напомни мне завтра в 9:00 позвонить маме", "Позвонить маме", "2026-11-24 09:00"),
        ("Remind me tomorrow at 9am to call mom", "Call mom", "2026-11-24 09:00"),
        ("Напомните, пожалуйста, завтра в 9 про отчёт", "Отчёт", "2026-11-24 09:00"),
        ("Please remind me to send the offer on Friday at 15:00.", "Send the offer", "2026-11-27 15:00"),
        ("Завтра напомни в 9, что нужно сдать книгу", "Сдать книгу", "2026-11-24 09:00"),
    ],
)
def test_a_request_for_a_reminder_is_heard(text: str, what: str, when: str) -> None:
    (request,) = find_reminders(text, NOW)

    assert request.due is not None
    assert (request.text, f"{request.due.at:%Y-%m-%d %H:%M}") == (what, when)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("Remind me tomorrow to call mom at 9:30", "2026-11-24 09:30"),
        ("Напомни завтра позвонить маме в 9:30", "2026-11-24 09:30"),
        ("Напомни завтра позвонить маме в 9 часов", "2026-11-24 09:00"),
        ("Напомни сегодня позвонить маме в 7", "2026-11-23 19:00"),
    ],
)
def test_an_hour_that_has_passed_today_has_not_tomorrow(text: str, when: str) -> None:
    (request,) = find_reminders(text, NOW.replace(hour=15))

    assert request.due is not None
    assert f"{request.due.at:%Y-%m-%d %H:%M}" == when


@pytest.mark.parametrize(
    ("text", "whats"),
    [
        ("напомни в 12 выпить таблетку и в 17 забрать костюм", ["Выпить таблетку", "Забрать костюм"]),
        ("remind me to take the pill at 12:00 and to call Boris at 17:00", ["Take the pill", "Call Boris"]),
    ],
)
def test_several_moments_are_several_reminders(text: str, whats: list[str]) -> None:
    requests = find_reminders(text, NOW)

    assert [(each.text, each.due and f"{each.due.at:%H:%M}") for each in requests] == list(
        zip(whats, ["12:00", "17:00"], strict=True)
    )


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("Remind me", "empty"),
        ("Напомни вчера позвонить Борису", "past"),
        ("Remind me yesterday to call Bob", "past"),
        ("Remind me to buy bread", None),
        ("Remind me what we decided yesterday", None),
    ],
)
def test_a_request_that_cannot_be_met_has_a_flaw(text: str, flaw: str | None) -> None:
    assert reminder_flaw(text, NOW) == flaw


@pytest.mark.parametrize(
    "text",
    [
        "Напомни, какой код от двери?",
        "Напомни купить хлеб.",
        "Remind me what we decided yesterday at 15:00.",
        "Я напомню ему завтра в 9:00.",
        "Позвоню завтра в 9:00.",
        "Don't remind me about the dentist tomorrow at 9.",
        "Did you set a reminder for tomorrow at 9?",
        "You didn't remind me yesterday, I was there tomorrow at 9.",
    ],
)
def test_what_names_no_moment_to_come_or_asks_for_no_reminder_has_none(text: str) -> None:
    assert not any(each.is_timed for each in find_reminders(text, NOW))


@pytest.mark.parametrize(
    ("text", "what", "day"),
    [
        ("Remind me to buy bread", "Buy bread", ""),
        ("Could you please remind me on Monday to submit the report?", "Submit the report", "Monday"),
        ("Remind me that I need to pay the invoice by Friday", "Pay the invoice", "Friday"),
        ("Напомни, что мне надо оплатить счёт до пятницы", "Оплатить счёт", "пятницы"),
        ("Напомни мне о встрече с банком в среду", "Встрече с банком", "в среду"),
        ("Ой, напомни плиз в субботу забрать посылку", "Забрать посылку", "субботу"),
    ],
)
def test_without_a_moment_work_is_a_reminder_of_its_day(text: str, what: str, day: str) -> None:
    (request,) = find_reminders(text, NOW)

    assert (request.text, request.due.said if request.due else "", request.is_timed) == (what, day, False)


@pytest.mark.parametrize(
    ("when", "at", "on"),
    [
        ("завтра в 9", "2026-11-24T09:00:00+03:00", None),
        ("Friday 15:00", "2026-11-27T15:00:00+03:00", None),
        ("четверг", "2026-11-26T23:59:59+03:00", date(2026, 11, 26)),
        ("2026-11-26", "2026-11-26T23:59:59+03:00", date(2026, 11, 26)),
        ("2026-11-26T15:00", "2026-11-26T15:00:00+03:00", None),
        ("2026-11-26T15:00Z", "2026-11-26T15:00:00+00:00", None),
        ("at 6", "2026-11-23T18:00:00+03:00", None),
        ("in 20 seconds", "2026-11-23T10:05:20+03:00", None),
    ],
)
def test_a_date_is_taken_as_said_or_as_iso_on_the_users_clock(when: str, at: str, on: date | None) -> None:
    due = parse_due(when, NOW)

    assert (due.at.isoformat(), due.on) == (at, on)


def test_without_a_date_one_is_told_what_to_write() -> None:
    with pytest.raises(NoDate, match="Friday 15:00"):
        parse_due("someday", NOW)


def a_task(**changes: Any) -> Task:
    known = {
        "task_id": "task_1",
        "text": "Подготовить смету",
        "owner_id": "anna",
        "asked_by": "anna",
        "found_at": NOW,
        "changed_at": NOW,
    }
    return Task.model_validate(known | changes)


FRIDAY = a_task(due=datetime(2026, 11, 27, 23, 59, 59, tzinfo=MOSCOW), due_on=date(2026, 11, 27))


def test_a_date_without_a_time_is_told_in_the_morning_of_that_day_and_once_more_when_it_is_over() -> None:
    moments = [NOW]
    while moment := next_reminder(FRIDAY, CLOCK, moments[-1]):
        moments.append(moment)

    assert [f"{moment:%a %H:%M}" for moment in moments[1:]] == ["Fri 08:00", "Sat 08:00"]
    assert not any(is_at_minute(FRIDAY, CLOCK, moment) for moment in moments[1:])


def test_a_time_is_told_at_its_minute_too() -> None:
    meeting = a_task(due=datetime(2026, 11, 27, 15, tzinfo=MOSCOW))

    morning = next_reminder(meeting, CLOCK, NOW)
    assert morning is not None
    minute = next_reminder(meeting, CLOCK, morning)

    assert (morning.hour, minute) == (8, meeting.due)
    assert is_at_minute(meeting, CLOCK, minute or NOW)
    assert not is_at_minute(meeting, CLOCK, morning)
    assert reminder_of(meeting, CLOCK, minute or NOW).urgency is Urgency.NORMAL, "quiet hours hold"


def test_a_reminder_comes_at_its_minute_alone_whatever_the_hour() -> None:
    at = datetime(2026, 11, 24, 3, 30, tzinfo=MOSCOW)
    wake = a_task(text="Встать", due=at, remind_at=at)

    told = reminder_of(wake, CLOCK, at)

    assert next_reminder(wake, CLOCK, NOW) == at
    assert next_reminder(wake, CLOCK, at) is None
    assert (told.urgency, told.message) == (Urgency.HIGH, "Вы просили напомнить: «Встать».")


def test_the_morning_digest_lists_what_is_due_and_what_is_late() -> None:
    friday = datetime(2026, 11, 27, 8, tzinfo=MOSCOW)
    others = [
        a_task(task_id="task_2", text="Созвон", due=friday + timedelta(hours=7)),
        a_task(task_id="task_3", text="Старый отчёт", due=friday - timedelta(days=2), due_on=date(2026, 11, 25)),
        a_task(task_id="task_4", text="Потом", due=friday + timedelta(days=3)),
        a_task(task_id="task_5", text="Чужое", owner_id="boris", due=friday),
    ]

    digest = digest_of("anna", [FRIDAY, *others], CLOCK, friday)

    assert digest is not None
    assert digest.message == (
        "Срок сегодня: «Подготовить смету», «Созвон» (15:00). Просрочено: «Старый отчёт» (среда, 25 ноября)."
    )
    assert digest.urgency is Urgency.NORMAL
    assert digest_of("olga", [FRIDAY], CLOCK, friday) is None


def test_a_single_task_is_told_in_a_sentence() -> None:
    digest = digest_of("anna", [FRIDAY], CLOCK, datetime(2026, 11, 27, 8, tzinfo=MOSCOW))

    assert digest is not None
    assert digest.message == "Срок задачи «Подготовить смету» — сегодня, 27 ноября."
