"""One conformance suite for both transports: send, request, publish, subscribe, settle."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.envelope import Envelope
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import NoReply, ReplyError, Unroutable, Worker, on_event
from mindbus.bus.connection import open_transport
from mindbus.bus.handlers import PublishTo
from mindbus.bus.topology import REPLIES, replies_to, reply_queue
from mindbus.bus.transport import Incoming, Properties, RawCopy
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.greetings import Count, Eavesdropper, Greet, Greeted, Greeter, Greeting, Hold, Listener, Misbehave, Recite


@pytest.fixture(params=["memory", pytest.param("rabbit", marks=pytest.mark.rabbit)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> FleetSettings:
    in_memory = f"memory://{secrets.token_hex(4)}"
    url = in_memory if request.param == "memory" else request.getfixturevalue("vhost_url")
    return settings_for(url, tmp_path)


async def test_a_request_is_answered_with_the_commands_own_result(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        greeting = await fleet.bus.request(Greet(name="Анна"))

    assert greeting.text == "Hello, Анна!"


async def test_a_command_that_is_sent_is_handled_once(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.send(Greet(name="Boris"))
        await until(lambda: fleet[Greeter].greeted)
        answer = await fleet.bus.request(Count(name="Boris"))

    assert answer.times_seen == 1


async def test_many_requests_at_once_each_get_their_own_answer(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        greetings = await asyncio.gather(*(fleet.bus.request(Greet(name=str(n))) for n in range(100)))

    assert [greeting.text for greeting in greetings] == [f"Hello, {n}!" for n in range(100)]


async def test_what_is_delivered_without_a_prefetch_needs_no_acknowledgement(settings: FleetSettings) -> None:
    transport, key = open_transport(settings, "test"), "reply.client.test"
    topology, queue, first, later = (
        replies_to(key, exclusive=False),
        reply_queue(key),
        list[Incoming](),
        list[Incoming](),
    )
    await transport.declare(topology)
    for number in range(200):
        await transport.publish(RawCopy(REPLIES, key, b"%d" % number, Properties(), {}))

    consumer = transport.consume(topology, queue, None, first.append)
    await until(lambda: len(first) == 200)
    await consumer.close()
    await transport.publish(RawCopy(REPLIES, key, b"last", Properties(), {}))
    transport.consume(topology, queue, None, later.append)
    await until(lambda: later)
    await transport.close()

    assert [incoming.body for incoming in first] == [b"%d" % number for number in range(200)]
    assert [incoming.body for incoming in later] == [b"last"]


async def test_a_queue_that_serves_one_consumer_alone_goes_with_it(settings: FleetSettings) -> None:
    transport, key = open_transport(settings, "test"), "reply.client.test"
    consumer = transport.consume(replies_to(key, exclusive=True), reply_queue(key), None, list[Incoming]().append)
    await consumer.wait_ready()
    await consumer.close()

    with pytest.raises(Unroutable):
        await transport.publish(RawCopy(REPLIES, key, b"late", Properties(), {}))
    await transport.close()


async def test_an_event_reaches_every_listening_service_and_subscriber(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, Listener, Eavesdropper, settings=settings) as fleet:
        async with fleet.bus.subscribe(Greeted) as events:
            await fleet.bus.request(Greet(name="Vera"))
            event = await anext(aiter(events))
        await until(lambda: fleet[Listener].heard and fleet[Eavesdropper].heard)

    assert event.name == "Vera"
    assert fleet[Listener].heard == [("Vera", 1)]
    assert [envelope.type for envelope in fleet[Eavesdropper].heard] == ["mb.evt.greeting.greeted.v1"]


async def test_an_answer_can_be_heard_while_it_grows(settings: FleetSettings) -> None:
    text = " ".join(str(n) for n in range(500))
    async with fleet_of(Greeter, settings=settings) as fleet:
        heard = [part async for part in fleet.bus.stream(Recite(text=text))]

    parts, result = [part for part in heard if isinstance(part, str)], heard[-1]
    assert "".join(parts).split() == text.split()
    assert result == Greeting(text=text)
    assert 2 <= len(parts) < 100


async def test_parts_are_no_answer_to_a_request(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        assert (await fleet.bus.request(Recite(text="one two"))).text == "one two"


async def test_an_event_that_nobody_hears_is_no_error(settings: FleetSettings) -> None:
    async with fleet_of(settings=settings) as fleet:
        await fleet.bus.publish(Greeted(name="nobody"))


async def test_a_subscription_to_a_trace_hears_that_trace_alone(settings: FleetSettings) -> None:
    async with fleet_of(settings=settings) as fleet, fleet.bus.subscribe(Greeted, trace="run_2") as events:
        await fleet.bus.publish(Greeted(name="one"), trace="run_1")
        await fleet.bus.publish(Greeted(name="two"), trace="run_2")
        event = await anext(aiter(events))

    assert event.name == "two"


async def test_a_command_without_a_service_is_unroutable(settings: FleetSettings) -> None:
    async with fleet_of(settings=settings) as fleet:
        with pytest.raises(Unroutable, match=r"mb\.cmd\.greeter"):
            await fleet.bus.send(Greet(name="nobody there"))


async def test_a_refusal_reaches_the_asker_with_code_and_details(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        with pytest.raises(ReplyError) as failure:
            await fleet.bus.request(Misbehave(how="refused"))

    assert failure.value.code is Code.NOT_FOUND
    assert failure.value.details == {"looked_for": "it"}
    assert not failure.value.retryable


async def test_a_request_without_an_answer_ends_at_its_deadline(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        with pytest.raises(NoReply, match="may still be carried out"):
            await fleet.bus.request(Hold(), timeout_s=0.3)
        fleet[Greeter].gate.set()


async def test_a_command_past_its_deadline_is_not_run(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.send(Greet(name="late"), deadline=datetime.now(UTC) - timedelta(seconds=1))
        await fleet.bus.request(Greet(name="in time"))

    assert fleet[Greeter].greeted == ["in time"]


async def test_data_over_the_limit_travels_as_a_claim_and_arrives_typed(settings: FleetSettings) -> None:
    note = "ы" * 2_500_000
    async with fleet_of(Greeter, settings=settings) as fleet, fleet.bus.subscribe(Greeted) as events:
        greeting = await fleet.bus.request(Greet(name="big", note=note))
        event = await anext(aiter(events))

    assert greeting.times_seen == len(note)
    assert event.text == note


async def test_a_subscription_lasts_as_long_as_its_block_whatever_iterates_over_it(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet, fleet.bus.subscribe(Greeted) as events:
        heard = []
        for name in ("Anna", "Boris"):
            await fleet.bus.request(Greet(name=name))
            async with asyncio.timeout(60):
                heard.append((await anext(aiter(events))).name)
            # Time for the iterator that nobody holds any more to end.
            await fleet.bus.request(Greet(name="meanwhile"))
            async with asyncio.timeout(60):
                heard.append((await anext(aiter(events))).name)

    assert heard == ["Anna", "meanwhile", "Boris", "meanwhile"]


async def test_what_a_handler_says_continues_the_story_of_its_cause(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet, fleet.bus.subscribe("greeting.*") as events:
        cause = await fleet.bus.send(Greet(name="Anna"), trace="conv_1", step="s1")
        told = await anext(aiter(events))

    assert (told.causationid, told.correlationid) == (cause, cause)
    assert (told.mbtraceid, told.mbstepid, told.mbhops) == ("conv_1", "s1", 1)
    assert told.mbrequester == "svc.greeter"


async def test_a_worker_that_stops_finishes_what_it_has_begun(settings: FleetSettings) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.send(Hold())
        greeter = fleet[Greeter]
        await until(lambda: greeter.held)
        asyncio.get_running_loop().call_later(0.05, greeter.gate.set)
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.request(Greet(name="afterwards"))

        assert fleet[Greeter].held == 0


class Confidant(Worker):
    """Tells each greeting to its subscribers alone."""

    name = "confidant"

    @on_event
    async def pass_on(self, event: Greeted) -> list[PublishTo]:
        return [PublishTo(event, f"friend-{number}") for number in (1, 2)]


async def test_a_subscriber_hears_what_it_was_told_while_it_was_away(settings: FleetSettings) -> None:
    async with fleet_of(lambda _kit: Confidant(), settings=settings) as fleet:
        assert await fleet.bus.keep_queue("friend-1") == "mb.sub.friend-1"
        for name in ("Anna", "Boris"):
            await fleet.bus.publish(Greeted(name=name))
        async with fleet.bus.standing_subscription("friend-1") as hearing:
            events = aiter(hearing)
            heard = [_named(await anext(events)), _named(await anext(events))]

    # Nobody keeps a queue for the other friend.
    assert heard == ["Anna", "Boris"]


async def test_what_a_subscriber_did_not_finish_comes_again(settings: FleetSettings) -> None:
    async with fleet_of(lambda _kit: Confidant(), settings=settings) as fleet:
        await fleet.bus.keep_queue("friend-1")
        for name in ("Anna", "Boris", "Vera"):
            await fleet.bus.publish(Greeted(name=name))
        async with fleet.bus.standing_subscription("friend-1") as hearing:
            events = aiter(hearing)
            await anext(events)
            unfinished = await anext(events)
        async with fleet.bus.standing_subscription("friend-1") as hearing:
            again = await anext(aiter(hearing))

    assert again.id == unfinished.id


async def test_a_subscribers_queue_goes_with_all_that_is_in_it(settings: FleetSettings) -> None:
    async with fleet_of(lambda _kit: Confidant(), settings=settings) as fleet:
        await fleet.bus.keep_queue("friend-1")
        await fleet.bus.publish(Greeted(name="Anna"))
        async with fleet.bus.standing_subscription("friend-1") as hearing:
            assert _named(await anext(aiter(hearing))) == "Anna"
        await fleet.bus.drop_queue("friend-1")
        await fleet.bus.drop_queue("friend-1")
        await fleet.bus.keep_queue("friend-1")
        async with fleet.bus.standing_subscription("friend-1") as hearing:
            await fleet.bus.publish(Greeted(name="Boris"))
            assert _named(await anext(aiter(hearing))) == "Boris"


def _named(envelope: Envelope) -> str:
    return Greeted.model_validate(envelope.data).name
