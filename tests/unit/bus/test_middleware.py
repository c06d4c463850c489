"""Middleware of one's own, as the guide shows it; deliveries through the whole pipeline."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from bus_schema.replies import Code
from mindbus import Command, Nothing, Rejected, Worker, on_command, time_limit
from mindbus.bus.inbox import MemoryInbox, Outcomes
from mindbus.bus.transport import Outgoing
from mindbus.middleware import RetryOn
from mindbus.testing import deliver
from tests.storage_kit import an_envelope

GUIDE = Path(__file__).parents[3] / "docs/how-to/middleware.md"


@pytest.fixture(scope="module")
def guide() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": __name__}
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    exec(compile(code, str(GUIDE), "exec"), names)
    return names


async def test_the_guides_middleware_lets_the_team_pass_and_refuses_others(guide: dict[str, Any]) -> None:
    worker, order = guide["Orders"](), guide["PlaceOrder"](item="tea")

    taken = await deliver(worker, order, by="user.anna")
    refused = await deliver(worker, order, by="user.boris")

    assert (taken.outcome, taken.result.item) == ("handled", "tea")
    assert refused.outcome == Code.INVALID
    assert refused.reply is not None
    assert refused.reply.message == "user.boris is not of the team"
    with pytest.raises(Rejected, match=r"user\.boris is not of the team"):
        assert refused.result


class Fetch(Command[Nothing], domain="middleware_test", action="fetch"):
    """Fail like a disk."""


class Fetcher(Worker):
    name = "middleware_test"
    middleware = (RetryOn(OSError),)

    def __init__(self) -> None:
        self.calls = 0

    @on_command
    async def fetch(self, command: Fetch) -> None:
        self.calls += 1
        if self.calls == 1:
            raise OSError("disk is away")


async def test_errors_of_others_are_retried_and_a_duplicate_runs_once() -> None:
    worker = Fetcher()

    outcomes = [(await deliver(worker, Fetch(), message_id="msg_1")).outcome for _ in range(3)]

    assert outcomes == ["retried", "handled", "handled"]
    assert worker.calls == 2


async def test_a_command_past_its_deadline_is_answered_and_not_run() -> None:
    worker = Fetcher()

    delivered = await deliver(worker, Fetch(), deadline=datetime.now(UTC) - timedelta(hours=3))

    assert (delivered.outcome, worker.calls) == (Code.EXPIRED, 0)
    assert delivered.reply is not None
    assert delivered.reply.code is Code.EXPIRED


async def test_the_time_of_a_handler_includes_the_commit_and_an_expired_command_has_none() -> None:
    worker, labels = Fetcher(), {"service": Fetcher.name, "type": Fetch.wire.type}
    at_commit = []

    def measured() -> float:
        return REGISTRY.get_sample_value("mindbus_handling_seconds_count", labels) or 0

    class Watched(MemoryInbox):
        def remember(self, consumer: str, outcomes: Outcomes) -> None:
            at_commit.append(measured())

    worker.inbox = Watched()
    before = measured()
    await deliver(worker, Fetch(), deadline=datetime.now(UTC) - timedelta(seconds=1))
    assert measured() == before

    await deliver(worker, Fetch())
    await deliver(worker, Fetch())
    assert (at_commit, measured()) == ([before + 1], before + 2)


class Hang(Command[Nothing], domain="middleware_test", action="hang"):
    """Wait for ever."""


class HangLonger(Command[Nothing], domain="middleware_test", action="hang_longer"):
    """Wait as long as its own limit lets it."""


class Hanger(Worker):
    name = "middleware_test"
    time_limit_s = 0.01

    @on_command
    async def hang(self, command: Hang) -> None:
        await asyncio.get_running_loop().create_future()

    @on_command
    @time_limit(seconds=60)
    async def hang_longer(self, command: HangLonger) -> None:
        await asyncio.sleep(0.05)
        raise TimeoutError("of its own")


async def test_a_handler_past_its_limit_is_cancelled_and_tried_again_until_no_attempt_is_left() -> None:
    patient, tried = Hanger(), Hanger()
    tried.attempts = 1

    first, last = [await deliver(worker, Hang()) for worker in (patient, tried)]

    assert (first.outcome, last.outcome) == ("retried", "dead")
    assert str(last.error) == "hang did not end within 0.01 s"


async def test_a_handler_has_the_limit_that_it_is_given() -> None:
    delivered = await deliver(Hanger(), HangLonger())

    assert str(delivered.error) == "of its own"


async def test_a_memory_inbox_remembers_a_bounded_number_of_outcomes() -> None:
    inbox = MemoryInbox(size=2)
    for message_id in ("msg_1", "msg_2", "msg_3"):
        async with inbox.unit_of_work("a") as unit:
            await unit.record({message_id: ()})

    assert await inbox.outcomes_of("a", ["msg_1", "msg_2", "msg_3"]) == {"msg_2": (), "msg_3": ()}
    assert await inbox.outcomes_of("b", ["msg_3"]) == {}


async def test_a_memory_inbox_remembers_a_bounded_number_of_bytes() -> None:
    envelope = an_envelope(Fetch(), "user.anna")
    sent = Outgoing("mb.reply", "reply.test.1", envelope, envelope.to_wire(), transient=True)
    inbox = MemoryInbox(most_bytes=3 * len(sent.body))
    for message_id in ("msg_1", "msg_2", "msg_2", "msg_3"):
        inbox.remember("a", {message_id: (sent,)})
    # What is handled again takes no more room than once.
    assert await inbox.outcomes_of("a", ["msg_1", "msg_3"]) == {"msg_1": (sent,), "msg_3": (sent,)}

    inbox.remember("a", {"msg_4": (sent, sent)})
    assert await inbox.outcomes_of("a", ["msg_1", "msg_2", "msg_3", "msg_4"]) == {
        "msg_3": (sent,),
        "msg_4": (sent, sent),
    }
