"""Scenarios A to E and Clear of spec 004, on a real broker, real files, a real database."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.dialogue import CheckTimeouts, DialogueFragment, EndDialogue
from tests.dialogue_kit import Runtime, dialogue_settings, runtime


@pytest.fixture
async def team(vhost_url: str, tmp_path: Path) -> AsyncIterator[Runtime]:
    async with runtime(dialogue_settings(vhost_url, tmp_path)) as running:
        yield running


async def test_scenario_a_a_message_is_stored_answered_and_published_with_its_fragment(team: Runtime) -> None:
    answered = await team.say("anna", "Борис, подготовь договор до пятницы.")
    assert answered.response
    assert await team.sequence("anna") == ["[user:native]", "[ai:native]"]

    ended = await team.bus.request(EndDialogue(user_id="anna"))

    (published,) = await team.until_on_timeline("dialogue_fragment_published")
    fragment = DialogueFragment.model_validate(published.data)
    assert fragment.fragment_id == ended.fragment_id
    assert list(fragment.messages) == await team.history("anna")
    results = await team.until_on_timeline("agent_result", 3)
    assert {result.data["agent"] for result in results if result.data} == {
        "task_manager",
        "context_manager",
        "mood_watcher",
    }
    assert await team.until_on_timeline("processed.tasks_found")


async def test_scenario_b_a_dialogue_that_falls_silent_becomes_a_fragment_once(team: Runtime) -> None:
    await team.say("anna", "Привет! Как дела?")
    now = datetime.now(UTC)

    early = await team.bus.request(CheckTimeouts(timeout_minutes=30, current_timestamp=now + timedelta(minutes=29)))
    late = await team.bus.request(CheckTimeouts(timeout_minutes=30, current_timestamp=now + timedelta(minutes=31)))
    again = await team.bus.request(CheckTimeouts(timeout_minutes=30, current_timestamp=now + timedelta(minutes=90)))

    assert early.expired == again.expired == ()
    assert [each.user_id for each in late.expired] == ["anna"]
    (published,) = await team.until_on_timeline("dialogue_fragment_published")
    assert published.data
    assert (published.data["reason"], published.data["fragment_id"]) == ("timeout", late.expired[0].fragment_id)
