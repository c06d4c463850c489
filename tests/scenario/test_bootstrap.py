"""Scenario D of spec 004: one command, and everything is ready in the order in which it needs each other."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aio_pika
import pytest

from tests.command_line import Shell, require_rabbitmq
from tests.dialogue_kit import RUNTIME

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(300)]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    require_rabbitmq()
    fleet = Shell(tmp_path / "data")
    try:
        yield fleet
    finally:
        fleet.ok("down")


async def consumers_of(amqp_url: str, queues: list[str]) -> dict[str, int | None]:
    """As the broker itself counts them, not as its statistics remember."""
    async with await aio_pika.connect(amqp_url) as connection:
        channel = await connection.channel()
        declared = {queue: await channel.declare_queue(queue, passive=True) for queue in queues}
    return {queue: found.declaration_result.consumer_count for queue, found in declared.items()}


def test_scenario_d_the_system_is_ready_when_up_returns_and_every_queue_is_consumed(shell: Shell) -> None:
    state = shell.json("up", "-d", "--workers", ",".join(RUNTIME))

    assert state["status"] == "ready"
    assert {name for process in state["workers"] for name in process["workers"]} == set(RUNTIME)
    queues = [queue["name"] for queue in shell.json("queues")]
    own = [queue for name in RUNTIME for queue in (f"mb.q.{name}", f"mb.q.{name}.events") if queue in queues]
    assert {queue.removeprefix("mb.q.").removesuffix(".events") for queue in own} == set(RUNTIME)
    consumers = asyncio.run(consumers_of(shell.json("status", "--show-secrets")["amqp_url"], own))
    assert all(consumers.values()), f"some say that they are ready before they consume: {consumers}"
    assert {shell.json("health", name)["state"] for name in RUNTIME} == {"ready"}
    answered = shell.json("chat", "--user", "anna", "--message", "Привет!")
    assert answered["response"]
    assert [each["kind"] for each in shell.json("dialogues", "history", "anna")] == ["native", "native"]
