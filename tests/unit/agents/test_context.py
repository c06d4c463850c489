"""The context agent decides what reaches a user, when and how, and says why."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.context.decisions import ContextAgent, ModelDecision
from agents.context.preferences import (
    DecisionContext,
    InvalidPreferences,
    NotificationPreferences,
    open_preferences,
    parse_preferences,
)
from agents.context.state import Delivery, NotificationDecision, NotificationState, settled_by_tasks
from agents.models.errors import ModelUnavailable
from agents.models.language_model import LanguageModel
from agents.models.offline.model import OfflineModel
from bus_schema.dialogue import DialogueMessage
from bus_schema.notification import NotificationGenerated, Urgency
from bus_schema.processing import Task, TaskUpdate
from tests.fragments import a_message
from tests.scripted_model import ScriptedModel

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)
NIGHT = datetime(2026, 3, 11, 23, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def news(number: int = 1, **changes: Any) -> NotificationGenerated:
    matters = ("договор", "смета", "отпуск", "аренда", "сервер", "буклет", "склад", "дизайн", "юрист", "банк")
    fields: dict[str, Any] = {
        "notification_id": f"ntf_{number}",
        "agent": "task_manager",
        "to_user": "anna",
        "message": f"Новость: {matters[number % 10]}, важное дело номер {number}.",
    }
    return NotificationGenerated(**(fields | changes))


class Office:
    """One user's context, at a clock that the test sets."""

    def __init__(self, model: LanguageModel | None = None, now: datetime = NOON, **habits: Any) -> None:
        self.agent = ContextAgent(model or OfflineModel())
        self.desk, self.now, self.habits = NotificationState(), now, NotificationPreferences(**habits)
        self.last_activity: datetime | None = None
        self.talk: Sequence[DialogueMessage] = ()
        self.delivery: Delivery | None = None

    async def hears(self, notification: NotificationGenerated) -> NotificationDecision:
        moment = DecisionContext(self.now, self.habits, self.last_activity)
        self.desk, (decision,), self.delivery = await self.agent.handle(notification, self.desk, moment, self.talk)
        return decision

    async def wakes(self, after: timedelta = timedelta()) -> tuple[NotificationDecision, ...]:
        self.now += after
        moment = DecisionContext(self.now, self.habits, self.last_activity)
        self.desk, decisions, self.delivery = await self.agent.review(self.desk, moment, self.talk)
        return decisions


async def test_what_nothing_speaks_against_is_delivered_at_once() -> None:
    office = Office()

    decision = await office.hears(news(context="сказано в среду"))

    assert (decision.verdict, decision.reason) == ("deliver", "nothing speaks against it")
    assert office.delivery == Delivery(
        to_user="anna", notification_id="ntf_1", message=news(1).message, context="сказано в среду"
    )


async def test_what_expires_sooner_does_not_wait_for_another() -> None:
    office = Office()
    await office.hears(news(1))
    office.last_activity = NOON
    await office.hears(news(2, urgency=Urgency.LOW))

    decision = await office.hears(news(3, expires=NOON + 4 * MINUTE))

    assert (decision.verdict, decision.until) == ("defer", NOON + 2 * MINUTE)


async def test_runs_of_a_card_ask_the_same_question_each_for_itself() -> None:
    office = Office(gap_minutes=0)

    decisions = [
        await office.hears(news(number, agent="orchestrator", about=f"run_{number}/sign/1", message="Publish it?"))
        for number in (1, 2)
    ]

    assert [decision.verdict for decision in decisions] == ["deliver", "deliver"]


async def test_what_is_stale_is_not_told() -> None:
    decision = await Office().hears(news(expires=NOON - MINUTE))

    assert (decision.verdict, decision.reason) == ("ignore", "stale: expired at 2026-03-11 11:59")


@pytest.mark.parametrize(
    "again",
    [
        news(2, about="task_1 due_soon", message="Совсем другие слова."),
        news(2, message="Новость: смета, важное дело номер 1!"),
    ],
    ids=["same matter", "same words"],
)
async def test_what_was_told_is_not_told_again(again: NotificationGenerated) -> None:
    office = Office(gap_minutes=0)
    await office.hears(news(1, about="task_1 due_soon" if again.about else ""))
    office.now += timedelta(hours=1)

    decision = await office.hears(again)

    assert decision.verdict == "ignore"
    assert decision.reason == "the same as ntf_1, told at 2026-03-11 12:00"


async def test_two_reminders_in_the_same_words_each_come_at_their_own_time() -> None:
    office, words = Office(), "Вы просили напомнить: «Выпить таблетку»."
    asked = {"message": words, "urgency": Urgency.HIGH}
    first = await office.hears(news(1, about="task_1 2026-03-11T12:00:00+00:00 reminder", **asked))
    office.now += timedelta(hours=4)
    second = await office.hears(news(2, about="task_2 2026-03-11T16:00:00+00:00 reminder", **asked))

    assert (first.verdict, second.verdict) == ("deliver", "deliver")


async def test_another_number_makes_it_other_news() -> None:
    office = Office(gap_minutes=0)
    await office.hears(news(1, message="Бюджет проекта вырос до 500 тысяч."))

    assert (await office.hears(news(2, message="Бюджет проекта вырос до 700 тысяч."))).verdict == "deliver"


async def test_the_same_matter_may_be_told_again_another_day() -> None:
    office = Office()
    await office.hears(news(1, about="mood down"))
    office.now += timedelta(days=1)

    assert (await office.hears(news(2, about="mood down"))).verdict == "deliver"


async def test_what_waits_is_not_doubled_either() -> None:
    office = Office(now=NIGHT)
    await office.hears(news(1))

    decision = await office.hears(news(2, message=news(1).message))

    assert decision.verdict == "ignore"
    assert "which waits until 2026-03-12 08:00" in decision.reason


async def test_at_night_news_wait_for_the_morning_and_come_as_one() -> None:
    office = Office(now=NIGHT)

    first, second = await office.hears(news(1, context="a")), await office.hears(news(2, context="b"))

    morning = datetime(2026, 3, 12, 8, tzinfo=UTC)
    assert (first.verdict, first.until, first.reason) == ("defer", morning, "quiet hours until 08:00")
    assert (second.verdict, second.until, second.into) == ("merge", morning, "ntf_1")
    assert office.desk.next_due == morning
    assert await office.wakes(timedelta(hours=8)) == ()

    decisions = await office.wakes(timedelta(hours=1))

    assert [each.verdict for each in decisions] == ["deliver", "deliver"]
    assert office.delivery is not None
    assert office.delivery.merged == ("ntf_2",)
    assert office.delivery.message == f"Сразу несколько новостей. 1) {news(1).message} 2) {news(2).message}"
    assert office.delivery.context == "a\nb"
    assert office.desk.waiting == ()


async def test_what_is_urgent_breaks_into_the_night() -> None:
    decision = await Office(now=NIGHT).hears(news(urgency=Urgency.HIGH))

    assert (decision.verdict, decision.reason) == ("deliver", "urgent")


async def test_what_would_be_stale_in_the_morning_is_not_told_at_all() -> None:
    decision = await Office(now=NIGHT).hears(news(expires=NIGHT + timedelta(hours=2)))

    assert (decision.verdict, decision.reason) == ("ignore", "quiet hours until 08:00, by then it is stale")


async def test_something_unimportant_waits_for_a_pause_in_the_talk() -> None:
    office = Office()
    office.last_activity = NOON - MINUTE

    low, normal = await office.hears(news(1, urgency=Urgency.LOW)), await office.hears(news(2))

    assert (low.verdict, low.until) == ("defer", NOON + 4 * MINUTE)
    assert low.reason == "waits for a pause in the talk"
    assert normal.verdict == "deliver"


async def test_what_comes_close_after_another_gathers() -> None:
    office = Office()
    await office.hears(news(1))

    second, third = await office.hears(news(2)), await office.hears(news(3))

    assert (second.verdict, second.until) == ("defer", NOON + 2 * MINUTE)
    assert (third.verdict, third.into) == ("merge", "ntf_2")
    assert [each.verdict for each in await office.wakes(2 * MINUTE)] == ["deliver", "deliver"]
    assert office.delivery is not None
    assert (office.delivery.notification_id, office.delivery.merged) == ("ntf_2", ("ntf_3",))


async def test_what_cannot_gather_in_time_is_told_now() -> None:
    office = Office()
    await office.hears(news(1))

    decision = await office.hears(news(2, expires=NOON + MINUTE))

    assert decision.verdict == "deliver"
    assert decision.reason.startswith("would be stale if it waited")


async def test_nobody_is_told_more_than_so_many_things_an_hour() -> None:
    office = Office(gap_minutes=0, most_per_hour=2)
    await office.hears(news(1))
    office.now += 20 * MINUTE
    await office.hears(news(2))

    third = await office.hears(news(3))

    assert (third.verdict, third.until) == ("defer", NOON + timedelta(hours=1))
    assert third.reason == "more than 2 an hour"
    assert [each.verdict for each in await office.wakes(40 * MINUTE)] == ["deliver"]


async def test_what_is_settled_meanwhile_is_not_reminded_of_but_its_end_is_news() -> None:
    office = Office(now=NIGHT)
    await office.hears(news(1, about="task_7 2026-03-12 due_soon"))
    await office.hears(news(2, about="task_7 2026-03-12 done"))
    done = Task(
        task_id="task_7",
        text="Смета",
        asked_by="anna",
        status="done",
        found_at=NOON,
        changed_at=NOON,
        message_ids=("msg_1",),
    )
    office.desk = office.desk.with_settled(settled_by_tasks([TaskUpdate(change="done", task=done)]))

    reminder, end = await office.wakes(timedelta(hours=10))

    assert (reminder.verdict, reminder.reason) == ("ignore", "settled meanwhile: task_7")
    assert end.verdict == "deliver"


async def test_a_notification_that_comes_again_meets_the_same_decision() -> None:
    office = Office()
    first, delivery = await office.hears(news()), office.delivery
    desk = office.desk
    office.now += timedelta(hours=5)

    assert await office.hears(news()) == first
    assert office.delivery == delivery
    assert office.desk == desk


async def test_the_desk_can_be_kept_and_read_again() -> None:
    office = Office(now=NIGHT)
    await office.hears(news(1))
    await office.hears(news(2, urgency=Urgency.HIGH))

    assert NotificationState.model_validate_json(office.desk.model_dump_json()) == office.desk


async def test_only_so_much_is_told_at_once() -> None:
    office = Office(now=NIGHT)
    for number in range(8):
        await office.hears(news(number))

    assert len(await office.wakes(timedelta(hours=9))) == 5
    later = await office.wakes()
    assert [each.verdict for each in later] == ["defer", "merge", "merge"]
    assert len(await office.wakes(2 * MINUTE)) == 3


async def test_however_much_comes_the_desk_stays_small() -> None:
    office = Office(gap_minutes=0, most_per_hour=60)

    for number in range(200):
        office.now += 2 * MINUTE
        await office.hears(news(number, message=f"Совершенно особое событие {number}."))

    assert len(office.desk.model_dump_json()) < 128 * 1024


def judgement(**changes: Any) -> ModelDecision:
    fields: dict[str, Any] = {
        "decision": "deliver",
        "defer_minutes": None,
        "reason": "they asked for it",
        "message": "Кстати, срок сметы — 13 марта.",
    }
    return ModelDecision(**(fields | changes))


SMETA = news(message="Срок сметы — 13 марта.")


async def test_a_model_may_put_it_better() -> None:
    model = ScriptedModel(judgement())
    office = Office(model)
    office.talk = [a_message("msg_1", "anna", "Когда там смета?")]

    await office.hears(SMETA)

    assert office.delivery is not None
    assert office.delivery.message == "Кстати, срок сметы — 13 марта."
    assert "user: Когда там смета?" in model.asked[0][1].content


@pytest.mark.parametrize(
    "message",
    ["", "Кстати, срок сметы — завтра.", "Срок сметы — 13 марта, бюджет 900.", "Всё хорошо, 13 раз спасибо!"],
)
async def test_words_that_lose_or_add_something_are_not_taken(message: str) -> None:
    office = Office(ScriptedModel(judgement(message=message)))

    await office.hears(SMETA)

    assert office.delivery is not None
    assert office.delivery.message == SMETA.message


@pytest.mark.parametrize(
    ("urgency", "judged", "verdict"),
    [
        (Urgency.LOW, judgement(decision="ignore"), "ignore"),
        (Urgency.NORMAL, judgement(decision="ignore"), "deliver"),
        (Urgency.HIGH, judgement(decision="ignore"), "deliver"),
        (Urgency.NORMAL, judgement(decision="defer", defer_minutes=30), "defer"),
        (Urgency.NORMAL, judgement(decision="defer", defer_minutes=None), "deliver"),
        (Urgency.HIGH, judgement(decision="defer", defer_minutes=30), "deliver"),
    ],
)
async def test_a_model_decides_within_bounds(urgency: Urgency, judged: ModelDecision, verdict: str) -> None:
    office = Office(ScriptedModel(judged))

    decision = await office.hears(news(message=SMETA.message, urgency=urgency))

    assert decision.verdict == verdict
    assert verdict == "deliver" or decision.reason == "model: they asked for it"


async def test_a_model_puts_nothing_off_until_it_is_stale() -> None:
    office = Office(ScriptedModel(judgement(decision="defer", defer_minutes=90)))

    assert (await office.hears(news(expires=NOON + timedelta(hours=1)))).verdict == "deliver"


@pytest.mark.parametrize("answer", ["nonsense", ModelUnavailable("away")])
async def test_where_the_model_is_of_no_help_the_rules_stand(answer: str | ModelUnavailable) -> None:
    office = Office(ScriptedModel(answer))

    assert (await office.hears(SMETA)).verdict == "deliver"
    assert office.delivery is not None
    assert office.delivery.message == SMETA.message


@pytest.mark.parametrize(
    ("clock", "ends"),
    [
        ("21:59", None),
        ("22:00", "2026-03-12T08:00"),
        ("23:30", "2026-03-12T08:00"),
        ("07:59", "2026-03-11T08:00"),
        ("08:00", None),
    ],
)
def test_quiet_hours_reach_over_midnight(clock: str, ends: str | None) -> None:
    now = datetime.fromisoformat(f"2026-03-11T{clock}+00:00")
    quiet = NotificationPreferences().end_of_quiet(now)

    assert (quiet and quiet.isoformat(timespec="minutes")[:16]) == ends


def test_quiet_hours_are_those_of_the_users_own_clock() -> None:
    in_moscow = NotificationPreferences(zone="Europe/Moscow")

    assert in_moscow.end_of_quiet(datetime(2026, 3, 11, 20, tzinfo=UTC)) is not None
    assert in_moscow.end_of_quiet(datetime(2026, 3, 11, 6, tzinfo=UTC)) is None


def test_quiet_hours_may_lie_within_a_day_or_be_none() -> None:
    siesta = NotificationPreferences(quiet_from="13:00", quiet_until="15:00")

    assert siesta.end_of_quiet(NOON.replace(hour=14)) == NOON.replace(hour=15)
    assert siesta.end_of_quiet(NOON) is None
    assert NotificationPreferences(quiet_from=None).end_of_quiet(NIGHT) is None


def test_everybody_has_habits() -> None:
    habits = parse_preferences(b"default: {most_per_hour: 3}\nusers:\n  anna: {zone: Europe/Moscow}\n", "habits.yaml")

    assert (habits.of("anna").zone, habits.of("boris").most_per_hour) == ("Europe/Moscow", 3)
    assert open_preferences(None).of("anybody") == NotificationPreferences()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("default: {zone: Mars/Olympus}", "habits.yaml:1: default.zone: there is no time zone 'mars/olympus'"),
        (
            "default:\n  quiet_form: '22:00'",
            "habits.yaml:2: default.quiet_form: there is no such field; did you mean 'quiet_from'?",
        ),
        ("users:\n  'a b': {}", "habits.yaml:2: users.a b.[key]: a user id has"),
        ("default:\n  most_per_hour: 0", "habits.yaml:2: default.most_per_hour: 0 is out of range"),
    ],
)
def test_what_is_wrong_with_habits_is_said_with_file_line_and_field(text: str, complaint: str) -> None:
    with pytest.raises(InvalidPreferences) as bad:
        parse_preferences(text.encode(), "habits.yaml")

    assert complaint in str(bad.value)


@given(st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2027, 1, 1)), st.times(), st.times())  # noqa: DTZ001  # made aware below
def test_quiet_hours_end_within_a_day_and_are_over_then(naive: datetime, start: Any, end: Any) -> None:
    habits = NotificationPreferences(quiet_from=start.replace(microsecond=0), quiet_until=end.replace(microsecond=0))
    now = naive.replace(tzinfo=UTC)
    quiet = habits.end_of_quiet(now)

    assert quiet is None or now < quiet <= now + timedelta(days=1)
    assert quiet is None or habits.end_of_quiet(quiet) is None
