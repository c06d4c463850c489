"""How each kind of delivery ends on a real RabbitMQ, and that dead letters can be looked at and replayed."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import ReplyError
from mindbus.bus.deadletters import DeadLetter, DeadLetters
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of, settings_for
from tests.greetings import Count, Greet, Greeter, Misbehave
from tests.raw_amqp import RawPublisher, an_envelope, properties_for, raw_publisher


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path)


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(Greeter, settings=settings) as running:
        yield running


@pytest.fixture
def dead(vhost_url: str) -> DeadLetters:
    return DeadLetters(vhost_url)


@pytest.fixture
async def raw(vhost_url: str, fleet: Fleet) -> AsyncIterator[RawPublisher]:
    async with raw_publisher(vhost_url) as publisher:
        yield publisher


async def the_dead_letter(dead: DeadLetters) -> DeadLetter:
    letters = await until(lambda: dead.look("greeter"), what="a dead letter of the greeter")
    assert len(letters) == 1
    return letters[0]


def every_one(_letter: DeadLetter) -> bool:
    return True


async def test_a_bug_is_retried_twice_then_dead_lettered_with_its_reason(fleet: Fleet, dead: DeadLetters) -> None:
    with pytest.raises(ReplyError) as failure:
        await fleet.bus.request(Misbehave(how="bug"))

    letter = await the_dead_letter(dead)
    assert failure.value.code is Code.INTERNAL
    assert "ZeroDivisionError: a mistake of ours" in letter.reason
    assert (letter.code, letter.attempt, letter.origin) == ("internal", 3, "mb.q.greeter")
    assert fleet[Greeter].attempts_seen == [1, 2, 3]


async def test_a_temporary_failure_is_retried_within_its_budget(fleet: Fleet, dead: DeadLetters) -> None:
    with pytest.raises(ReplyError) as failure:
        await fleet.bus.request(Misbehave(how="temporary"))

    letter = await the_dead_letter(dead)
    assert failure.value.code is Code.UNAVAILABLE
    assert failure.value.retryable
    assert (letter.attempt, fleet[Greeter].attempts_seen) == (4, [1, 2, 3, 4])


async def test_a_temporary_failure_that_passes_is_answered_as_if_it_had_not_been(fleet: Fleet) -> None:
    await fleet.bus.request(Misbehave(how="temporary", times=2))

    assert fleet[Greeter].attempts_seen == [1, 2, 3]
    assert len(set(fleet[Greeter].misbehaved)) == 1


async def test_a_permanent_failure_is_dead_lettered_at_once_and_answered(fleet: Fleet, dead: DeadLetters) -> None:
    with pytest.raises(ReplyError) as failure:
        await fleet.bus.request(Misbehave(how="permanent"))

    letter = await the_dead_letter(dead)
    assert failure.value.code is Code.INVALID
    assert (letter.reason, letter.attempt) == ("never", 1)


async def test_a_refusal_makes_no_dead_letter_where_somebody_hears_it(fleet: Fleet, dead: DeadLetters) -> None:
    with pytest.raises(ReplyError):
        await fleet.bus.request(Misbehave(how="refused"))

    assert await dead.look("greeter") == []


async def test_a_refusal_that_nobody_asked_for_is_dead_lettered(fleet: Fleet, dead: DeadLetters) -> None:
    await fleet.bus.send(Misbehave(how="refused"))

    assert (await the_dead_letter(dead)).code == "not_found"


async def test_the_asker_hears_of_a_temporary_failure_by_its_deadline(
    settings: FleetSettings, dead: DeadLetters
) -> None:
    settings = settings.model_copy(update={"retry_rungs": "50ms,2s"})
    async with fleet_of(Greeter, settings=settings) as fleet:
        with pytest.raises(ReplyError) as failure:
            await fleet.bus.request(Misbehave(how="temporary", delay_ms=2_000), timeout_s=3)

    assert failure.value.code is Code.UNAVAILABLE
    assert (await the_dead_letter(dead)).attempt < 4


async def test_a_replayed_message_succeeds_after_the_fix(fleet: Fleet, dead: DeadLetters) -> None:
    message_id = await fleet.bus.send(Misbehave(how="bug"))
    await the_dead_letter(dead)

    fleet[Greeter].fixed = True
    replayed = await dead.replay("greeter", every_one, by="user.admin")

    assert [letter.message_id for letter in replayed] == [message_id]
    await until(lambda: fleet[Greeter].attempts_seen == [1, 2, 3, 1])
    assert await dead.look("greeter") == []


async def test_a_replayed_message_that_fails_again_comes_back(fleet: Fleet, dead: DeadLetters) -> None:
    await fleet.bus.send(Misbehave(how="permanent"))
    first = await the_dead_letter(dead)

    await dead.replay("greeter", every_one, by="user.admin")
    await until(lambda: len(fleet[Greeter].attempts_seen) == 2)

    letter = await the_dead_letter(dead)
    assert (letter.message_id, letter.replayed_by) == (first.message_id, "user.admin")


async def test_only_the_chosen_dead_letters_are_dropped(fleet: Fleet, dead: DeadLetters) -> None:
    kept, gone = [await fleet.bus.send(Misbehave(how="permanent")) for _ in range(2)]
    await until(lambda: _count(dead, 2))

    dropped = await dead.drop("greeter", lambda letter: letter.message_id == gone)

    assert [letter.message_id for letter in dropped] == [gone]
    assert (await the_dead_letter(dead)).message_id == kept


async def test_dead_letters_that_others_read_at_that_moment_are_dropped_as_well(
    fleet: Fleet, dead: DeadLetters
) -> None:
    for _ in range(6):
        await fleet.bus.send(Misbehave(how="permanent"))
    await until(lambda: _count(dead, 6))

    dropped, *seen = await asyncio.gather(dead.drop("greeter", every_one), *(dead.look("greeter") for _ in range(6)))

    assert len(dropped) == 6
    assert {len(letters) for letters in seen} <= {0, 6}
    assert await dead.look("greeter") == []


async def _count(dead: DeadLetters, number: int) -> bool:
    return len(await dead.look("greeter")) == number


BROKEN: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"{", "malformed envelope"),
    "not an object": (b"[1]", "expected an object"),
    "a key twice": (b'{"id": "1", "id": "2"}', "key given twice: id"),
    "NaN": (b'{"id": NaN}', "NaN is not JSON"),
    "a depth bomb": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 32"),
    "300 KiB": (b'"' + b"x" * 300 * 1024 + b'"', "a body has at most"),
    "no envelope": (b'{"hello": "world"}', "id: Field required"),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_malformed_body_is_dead_lettered_with_what_is_wrong(
    what: str, raw: RawPublisher, dead: DeadLetters
) -> None:
    body, reason = BROKEN[what]
    await raw.body(body, "mb.cmd.greeter", "cmd.greeter.greet", **properties_for(an_envelope()))

    letter = await the_dead_letter(dead)
    assert reason in letter.reason
    assert letter.body == body


FOREIGN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an unknown type": (an_envelope("mb.cmd.greeter.sing.v1"), {}, "unknown type mb.cmd.greeter.sing.v1"),
    "an unknown field": (an_envelope(data={"name": "x", "nmae": "y"}), {}, "nmae: Extra inputs are not permitted"),
    "a field of the wrong type": (an_envelope(data={"name": 7}), {}, "name: Input should be a valid string"),
    "another id in AMQP": (an_envelope(), {"message_id": "other"}, "AMQP message_id does not agree"),
    "another type in AMQP": (an_envelope(), {"type": "mb.cmd.greeter.count.v1"}, "AMQP type does not agree"),
    "another reply_to": (an_envelope(), {"reply_to": "mb.q.storage"}, "AMQP reply_to does not agree"),
    "compressed": (an_envelope(), {"content_encoding": "gzip"}, "content_encoding gzip is not accepted"),
    "plain JSON": (an_envelope(), {"content_type": "application/json"}, "content_type must be"),
    "a forged reply address": (an_envelope(mbreplyto="mb.q.storage"), {}, "mbreplyto"),
    "no identity": (an_envelope(mbrequester="root"), {}, "mbrequester"),
    "too many hops": (an_envelope(mbhops=17), {}, "mbhops"),
    "a claim nobody made": (an_envelope(dataref=f"claims/2026/01/01/{'0' * 64}"), {}, "not in the file store"),
    "a claim outside of the claims": (an_envelope(dataref="../../etc/passwd"), {}, "dataref"),
}


@pytest.mark.parametrize("what", FOREIGN)
async def test_a_message_that_cannot_be_trusted_is_dead_lettered_with_the_reason(
    what: str, raw: RawPublisher, dead: DeadLetters, fleet: Fleet
) -> None:
    envelope, changes, reason = FOREIGN[what]
    await raw.envelope(envelope, **changes)

    assert reason in (await the_dead_letter(dead)).reason
    assert fleet[Greeter].greeted == []


async def test_an_event_by_the_way_of_commands_is_refused(raw: RawPublisher, dead: DeadLetters) -> None:
    envelope = an_envelope("mb.cmd.greeter.count.v1")
    body = json.dumps(envelope).encode()
    await raw.body(body, "mb.cmd.greeter", "cmd.greeter.greet", **properties_for(envelope))

    assert "does not come by cmd.greeter.greet" in (await the_dead_letter(dead)).reason


async def test_a_retried_copy_is_taken_from_oneself_alone(raw: RawPublisher, dead: DeadLetters, fleet: Fleet) -> None:
    envelope = an_envelope()
    forged = properties_for(envelope, headers={"mb-attempt": 2, "mb-origin": "mb.q.elsewhere"})
    await raw.body(json.dumps(envelope).encode(), "mb.requeue", "mb.q.greeter", **forged)

    assert "a retried copy that this queue has not sent" in (await the_dead_letter(dead)).reason
    assert fleet[Greeter].greeted == []


async def test_a_message_that_comes_twice_is_handled_once(raw: RawPublisher, fleet: Fleet) -> None:
    envelope = an_envelope(data={"name": "twice"})
    for _ in range(5):
        await raw.envelope(envelope)

    assert (await fleet.bus.request(Greet(name="after"))).text
    assert fleet[Greeter].greeted.count("twice") == 1


async def test_what_was_done_in_time_is_answered_the_same_when_it_comes_again_late(
    raw: RawPublisher, fleet: Fleet, vhost_url: str
) -> None:
    expiry = datetime.now(UTC) + timedelta(seconds=1)
    envelope = an_envelope(expirytime=expiry.isoformat(), mbreplyto="reply.test.1")
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        replies = await channel.declare_queue(exclusive=True)
        await replies.bind("mb.reply", "reply.test.1")
        await raw.envelope(envelope)
        first = await until(lambda: replies.get(no_ack=True, fail=False), what="the first answer")
        await until(lambda: datetime.now(UTC) > expiry)
        await raw.envelope(envelope)
        second = await until(lambda: replies.get(no_ack=True, fail=False), what="the second answer")

    assert first is not None
    assert second is not None
    assert first.body == second.body
    assert json.loads(first.body)["data"]["status"] == "ok"
    assert fleet[Greeter].greeted == ["raw"]


async def test_two_hundred_poison_messages_delay_no_good_ones_retry(fleet: Fleet) -> None:
    await asyncio.gather(*(fleet.bus.send(Misbehave(how="bug", delay_ms=300)) for _ in range(200)))

    await fleet.bus.request(Misbehave(how="temporary", times=2), timeout_s=20)
    assert (await fleet.bus.request(Count(name="x"))).times_seen == 0


async def test_retries_to_a_queue_that_is_gone_are_kept_apart_and_block_nobody(
    vhost_url: str, settings: FleetSettings, dead: DeadLetters
) -> None:
    async with fleet_of(Greeter, settings=settings), raw_publisher(vhost_url) as raw:
        for _ in range(50):
            envelope = an_envelope()
            await raw.body(json.dumps(envelope).encode(), "mb.delay.50ms", "mb.q.gone", **properties_for(envelope))
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.request(Misbehave(how="temporary", times=2))

    assert len(await until(lambda: dead.look("lost"), what="the lost retries")) == 50
