"""What an agent keeps changes together with what it says about it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel

from bus_schema.dialogue import EndDialogue
from bus_schema.fleet import AgentResult
from bus_schema.messages import Event
from mindbus import Client, PermanentFailure, Publish, Send, TemporaryFailure
from mindbus.sdk.agent_state import AgentStateStore, OutgoingMessage
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET


class Count(BaseModel):
    """How often it was told something."""

    times: int = 0


class Score(BaseModel):
    """Something else altogether."""

    points: int


def told(number: int) -> AgentResult:
    return AgentResult(agent="counter", about=f"frag_{number}", outcome="found", took_ms=number)


async def counted(count: Count) -> tuple[Count, Sequence[OutgoingMessage]]:
    times = count.times + 1
    return Count(times=times), [told(times), Send(EndDialogue(user_id="anna"), "dialogue", "conv_anna")]


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Client]:
    async with fleet_of(FLEET["storage"], settings=settings_for("memory://notebook", tmp_path)) as fleet:
        yield fleet.bus


@pytest.fixture
def notebook(bus: Client) -> AgentStateStore[Count]:
    return AgentStateStore(bus, "counter", Count)


async def test_the_same_cause_is_thought_about_once_and_told_the_same(notebook: AgentStateStore[Count]) -> None:
    first = await notebook.process_once("anna", "frag_1", counted)
    again = await notebook.process_once("anna", "frag_1", counted)
    second = await notebook.process_once("anna", "frag_2", counted)

    assert first == again == [Publish(told(1)), Send(EndDialogue(user_id="anna"), "dialogue", "conv_anna")]
    assert second[0] == Publish(told(2))
    assert (await notebook.state("anna")).times == 2
    assert (await notebook.state("boris")).times == 0
    assert [(key, state.times) async for key, state in notebook.states()] == [("anna", 2)]


async def test_two_instances_never_count_over_each_other(bus: Client) -> None:
    instances = [AgentStateStore(bus, "counter", Count) for _ in range(3)]

    async def count_until_it_counts(instance: AgentStateStore[Count], cause: str) -> None:
        while True:
            try:
                await instance.process_once("team", cause, counted)
            except TemporaryFailure:
                continue
            return

    causes = [(instance, f"frag_{number}") for number, instance in enumerate(instances * 4)]
    await asyncio.gather(*(count_until_it_counts(*each) for each in causes))

    assert (await instances[0].state("team")).times == len(causes)


async def test_what_time_brings_about_is_told_after_a_crash_that_came_before(notebook: AgentStateStore[Count]) -> None:
    heard: list[Event] = []

    def due(count: Count) -> tuple[Count, Sequence[Event]]:
        return (Count(times=1), [told(1)]) if not count.times else (count, [])

    async def dies(_event: Event) -> None:
        raise ConnectionError("killed")

    async def hears(event: Event) -> None:
        heard.append(event)

    with pytest.raises(ConnectionError):
        await notebook.publish_due("team", due, dies)
    await notebook.publish_due("team", due, hears)
    await notebook.publish_due("team", due, hears)

    assert heard == [told(1)]


async def test_a_thought_that_fails_changes_nothing(notebook: AgentStateStore[Count]) -> None:
    async def fails(_count: Count) -> tuple[Count, Sequence[OutgoingMessage]]:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await notebook.process_once("anna", "frag_1", fails)
    assert await notebook.process_once("anna", "frag_1", counted)
    assert (await notebook.state("anna")).times == 1


async def test_what_another_version_of_the_agent_has_kept_is_named(
    notebook: AgentStateStore[Count], bus: Client
) -> None:
    await notebook.change("anna", lambda _count: Count(times=3))
    with pytest.raises(PermanentFailure, match="what counter keeps under anna is not a Score"):
        await AgentStateStore(bus, "counter", Score).state("anna")
