"""Every notification is delivered, put off, merged or left, once, with a reason; what waits survives."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bus_schema.dialogue import conversation_trace
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task
from bus_schema.tasks import TaskChanged
from config.settings import FleetSettings
from tests.dialogue_kit import Runtime, dialogue_settings, runtime
from tests.forked_workers import forked_workers_of


def a_notification(number: int, message: str, **fields: Any) -> NotificationGenerated:
    told = {"notification_id": f"ntf_{number}", "agent": "task_manager", "to_user": "anna", "message": message}
    return NotificationGenerated.model_validate(told | fields)


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return dialogue_settings(vhost_url, tmp_path)


@pytest.fixture
async def team(settings: FleetSettings) -> AsyncIterator[Runtime]:
    async with runtime(settings, "storage", "tracker", "context", "dialogue") as running:
        yield running


async def publish(team: Runtime, *notifications: NotificationGenerated) -> None:
    for notification in notifications:
        await team.bus.publish(notification, trace=conversation_trace(notification.to_user))


async def test_what_is_stale_or_told_already_is_left_with_a_reason(team: Runtime) -> None:
    await publish(team, a_notification(1, "Отчёт готов, 12 страниц.", about="report"))
    await team.until_on_timeline("notification_sent")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    await publish(
        team,
        a_notification(2, "Отчёт на 12 страницах готов.", about="report"),
        a_notification(3, "The meeting begins in five minutes.", expires=yesterday),
    )

    ignored = await team.until_on_timeline("notification.ignored", 2)

    reasons = {envelope.data["notification_id"]: envelope.data["reason"] for envelope in ignored if envelope.data}
    assert "the same as ntf_1" in reasons["ntf_2"]
    assert "stale" in reasons["ntf_3"]
    assert await team.sequence("anna") == ["[user:hidden instruction]", "[ai:notification]"]


async def test_a_task_that_is_open_again_is_reminded_of_again(team: Runtime) -> None:
    now = datetime.now(UTC)
    about = {"text": "Call Boris", "asked_by": "anna", "found_at": now, "changed_at": now, "message_ids": ("msg_1",)}
    for change, status in (("done", "done"), ("reopened", "open")):
        task = Task.model_validate(about | {"task_id": "task_7", "status": status})
        await team.bus.publish(TaskChanged(user_id="anna", change=change, task=task), trace=conversation_trace("anna"))
    reminder = "You asked to be reminded: “Call Boris”."
    await publish(team, a_notification(1, reminder, about=f"task_7 {now.isoformat()} reminder", urgency="high"))

    (sent,) = await team.until_on_timeline("notification_sent")

    assert sent.data
    assert sent.data["notification_id"] == "ntf_1"


async def test_what_is_put_off_outlives_the_agent_and_is_told_when_it_is_due(
    settings: FleetSettings, tmp_path: Path
) -> None:
    """A low notification waits for a pause in the talk."""
    habits = "default: {quiet_from: null, quiet_until: null, gap_minutes: 0, pause_minutes: 0.1}\nusers: {}\n"
    (tmp_path / "habits.yaml").write_text(habits, encoding="utf-8")
    async with runtime(settings, "storage", "tracker", "dialogue") as team:
        with forked_workers_of(settings) as workers:
            await workers.start("context")
            await team.say("anna", "I am in the middle of something.")
            await publish(team, a_notification(1, "A new version is out.", urgency="low"))
            (deferred,) = await team.until_on_timeline("notification.deferred")
            await workers.kill("context")
            (sent,) = await team.until_on_timeline("notification_sent")

    assert deferred.data
    assert deferred.data["reason"] == "waits for a pause in the talk"
    assert sent.time >= datetime.fromisoformat(deferred.data["until"])


async def test_what_waits_goes_out_as_one(settings: FleetSettings, tmp_path: Path) -> None:
    habits = "default: {quiet_from: null, quiet_until: null, gap_minutes: 0.08, pause_minutes: 0}\nusers: {}\n"
    (tmp_path / "habits.yaml").write_text(habits, encoding="utf-8")
    async with runtime(settings, "storage", "tracker", "context", "dialogue") as team:
        await publish(team, a_notification(1, "Договор подписан."))
        await team.until_on_timeline("notification_sent")
        await publish(team, a_notification(2, "Бюджет утверждён: 500 тысяч."), a_notification(3, "Релиз перенесён."))
        sent = await team.until_on_timeline("notification_sent", 2)

    assert [envelope.data["merged"] for envelope in sent if envelope.data] == [[], ["ntf_3"]]


async def test_quiet_hours_are_kept_for_each_user(settings: FleetSettings, tmp_path: Path) -> None:
    """Boris has them all day long but for a minute that is not now."""
    now = datetime.now(UTC)
    ends = (now + timedelta(hours=2)).strftime("%H:%M")
    begins = (now + timedelta(hours=2, minutes=1)).strftime("%H:%M")
    (tmp_path / "habits.yaml").write_text(
        "default: {quiet_from: null, quiet_until: null, gap_minutes: 0}\n"
        f'users: {{boris: {{quiet_from: "{begins}", quiet_until: "{ends}"}}}}\n',
        encoding="utf-8",
    )
    async with runtime(settings, "storage", "tracker", "context", "dialogue") as team:
        await publish(
            team,
            a_notification(1, "Hello, Boris.", to_user="boris"),
            a_notification(2, "Hello, Anna."),
            a_notification(3, "Fire, Boris!", to_user="boris", urgency="high"),
        )
        sent = await team.until_on_timeline("notification_sent", 2)
        (deferred,) = await team.until_on_timeline("notification.deferred")

    assert {envelope.data["notification_id"] for envelope in sent if envelope.data} == {"ntf_2", "ntf_3"}
    assert deferred.data
    assert "quiet hours" in deferred.data["reason"]
