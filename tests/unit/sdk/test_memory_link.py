"""The one place that is patient with memory."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus_schema.envelope import Envelope
from bus_schema.replies import Code
from bus_schema.swm import Count, GetCounter, IncrementCounter
from config.settings import FleetSettings
from mindbus import MessageContext, Rejected, ReplyError, Worker, WorkerContext, on_command
from mindbus.sdk.errors import CircuitOpen, MemoryAway, MemoryFailed, MemorySilent
from mindbus.sdk.memory_link import MemoryLink, mint_id
from mindbus.sdk.requests import CircuitBreaker, RetryPolicy
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of
from tests.raw_amqp import an_envelope
from tests.sdk_kit import Naps


class MoodyCounters(Worker):
    """Counts, except as often as it was told to refuse; holds back its answers while the gate is shut."""

    name = "swm"

    def __init__(self, _kit: WorkerContext) -> None:
        self.heard: list[str] = []
        self.refusals: list[Code] = []
        self.gate = asyncio.Event()
        self.gate.set()

    @on_command
    async def increment(self, _command: IncrementCounter, context: MessageContext) -> Count:
        self.heard.append(context.message_id)
        await self.gate.wait()
        if self.refusals:
            raise Rejected(self.refusals.pop(), "told to")
        return Count(value=len(self.heard))

    @on_command
    async def look(self, _query: GetCounter) -> Count:
        return Count(value=len(self.heard))


ADD = IncrementCounter(name="drafts", operation_id="op-1")


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    settings = FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path)
    async with fleet_of(MoodyCounters, settings=settings) as running:
        yield running


@pytest.fixture
def counters(fleet: Fleet) -> MoodyCounters:
    return fleet[MoodyCounters]


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def link(fleet: Fleet, naps: Naps) -> MemoryLink:
    return MemoryLink(
        fleet.bus, RetryPolicy(sleep=naps), timeout_s=10, breaker=lambda counts: CircuitBreaker(3, counts=counts)
    )


async def test_an_answer_that_is_slow_is_waited_for_not_caused_twice(
    link: MemoryLink, counters: MoodyCounters, naps: Naps
) -> None:
    link.timeout_s = 0.3
    counters.gate.clear()
    asking = asyncio.create_task(link.ask(ADD))
    await until(lambda: naps.taken_s)
    counters.gate.set()

    assert (await asking).value == 1
    assert len(counters.heard) == 1


async def test_unavailable_is_tried_again_with_growing_jitter(
    link: MemoryLink, counters: MoodyCounters, naps: Naps
) -> None:
    counters.refusals = [Code.UNAVAILABLE, Code.UNAVAILABLE]

    assert (await link.ask(ADD)).value == 3
    first, second = naps.taken_s
    assert 0 <= first <= 0.5
    assert 0 <= second <= 1.0


async def test_a_no_is_heard_at_once(link: MemoryLink, counters: MoodyCounters, naps: Naps) -> None:
    counters.refusals = [Code.CONFLICT]
    with pytest.raises(ReplyError) as refused:
        await link.ask(ADD)

    assert refused.value.code is Code.CONFLICT
    assert not isinstance(refused.value, MemoryAway)
    assert naps.taken_s == []


async def test_what_is_away_is_said_to_be_unavailable_then_left_in_peace(
    link: MemoryLink, counters: MoodyCounters
) -> None:
    counters.refusals = [Code.UNAVAILABLE] * 9
    with pytest.raises(MemoryFailed) as away:
        await link.ask(ADD)
    with pytest.raises(CircuitOpen) as open_circuit:
        await link.ask(ADD)

    assert away.value.code is open_circuit.value.code is Code.UNAVAILABLE
    assert len(counters.heard) == 3
    assert (await link.ask(GetCounter(name="drafts"))).value == 3, "what is asked for otherwise has its own breaker"


async def test_a_service_that_is_silent_is_left_in_peace_whatever_it_is_asked(
    link: MemoryLink, counters: MoodyCounters
) -> None:
    link.timeout_s = 0.1
    counters.gate.clear()
    with pytest.raises(MemorySilent):
        await link.ask(ADD)
    with pytest.raises(CircuitOpen):
        await link.ask(GetCounter(name="drafts"))
    counters.gate.set()


async def test_all_attempts_of_a_call_share_its_time(link: MemoryLink, counters: MoodyCounters) -> None:
    counters.gate.clear()

    async with asyncio.timeout(5):
        with link.within(0.2), pytest.raises(MemorySilent):
            await link.ask(ADD)
        with link.within(0), pytest.raises(MemorySilent, match="no time is left"):
            await link.ask(GetCounter(name="drafts"))

    counters.gate.set()
    assert len(counters.heard) == 1


def test_what_a_message_mints_it_mints_again() -> None:
    envelope = Envelope.model_validate(an_envelope())
    minted_by = []
    for attempt in (1, 2):
        with MessageContext(envelope, "planner", attempt):
            minted_by.append([mint_id("kem"), mint_id("kem")])

    assert minted_by[0] == minted_by[1]
    assert len({*minted_by[0], mint_id("kem")}) == 3


async def test_a_message_handled_again_asks_under_the_same_ids(link: MemoryLink, counters: MoodyCounters) -> None:
    envelope = Envelope.model_validate(an_envelope())
    for attempt in (1, 2):
        with MessageContext(envelope, "planner", attempt):
            if attempt == 1:
                # It finds the answer in local memory the next time.
                await link.ask(GetCounter(name="drafts"))
            assert (await link.ask(ADD)).value == 1

    assert len(counters.heard) == 1
