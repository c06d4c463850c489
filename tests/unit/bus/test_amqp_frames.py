"""Frames packed by hand are those of pamqp, and are parsed back."""

import random
from datetime import UTC, datetime
from typing import Any

import pamqp.frame
import pytest
from pamqp import body, commands, header

from mindbus.bus.amqp import frames
from mindbus.bus.amqp.frames import Content

STRINGS: dict[str, str | None] = {
    "content_type": "application/json",
    "content_encoding": "gzip",
    "correlation_id": "flow",
    "reply_to": "reply.x",
    "message_id": "m1",
    "type": "mb.cmd.x.y.v1",
    "user_id": "guest",
    "app_id": "greeter",
}
HEADERS: dict[str, Any] = {
    "mb-attempt": 2,
    "mb-origin": "mb.q.x",
    "x-death": [{"count": 1, "reason": "expired"}],
    "дом": "тест",
}


def of_pamqp(exchange: str, key: str, data: bytes, *, mandatory: bool, **properties: object) -> bytes:
    publish = commands.Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory)
    content = header.ContentHeader(0, len(data), commands.Basic.Properties(**properties))  # type: ignore[arg-type]
    parts = [pamqp.frame.marshal(publish, 7), pamqp.frame.marshal(content, 7)]
    return b"".join(parts) + (pamqp.frame.marshal(body.ContentBody(data), 7) if data else b"")


@pytest.mark.parametrize("mandatory", [True, False])
@pytest.mark.parametrize("headers", [{}, HEADERS])
@pytest.mark.parametrize("data", [b"", b"{}", "привет".encode() * 100])
def test_a_message_is_packed_as_pamqp_packs_it(mandatory: bool, headers: dict[str, Any], data: bytes) -> None:
    packed = frames.pack_publish(7, "mb.cmd.x", "ключ", mandatory=mandatory) + frames.pack_content(
        7, frames.pack_properties(STRINGS, headers, is_durable=True), data, 131_000
    )

    named = {name.replace("type", "message_type") if name == "type" else name: value for name, value in STRINGS.items()}
    wanted = of_pamqp("mb.cmd.x", "ключ", data, mandatory=mandatory, delivery_mode=2, headers=headers or None, **named)
    assert packed == wanted


def test_a_body_that_is_too_long_for_a_frame_goes_in_several() -> None:
    packed = frames.pack_content(1, frames.pack_properties({}, {}, is_durable=False), b"x" * 25, 10)

    sizes, at = [], 0
    while at < len(packed):
        kind, channel, size = frames.FRAME_HEAD.unpack_from(packed, at)
        assert (channel, packed[at + size + 7]) == (1, 0xCE)
        sizes.append((kind, size))
        at += size + frames.FRAME_EXTRA
    assert sizes[1:] == [(frames.BODY, 10), (frames.BODY, 10), (frames.BODY, 5)]


def test_properties_are_read_whatever_else_a_client_has_set() -> None:
    strange = commands.Basic.Properties(
        content_type="text/plain",
        headers=HEADERS,
        priority=3,
        correlation_id="flow",
        expiration="60000",
        message_id="m1",
        timestamp=datetime(2026, 11, 23, tzinfo=UTC),
        message_type="t",
        app_id="other",
    )
    payload = pamqp.frame.marshal(header.ContentHeader(0, 5, strange), 1)[7:-1]

    size, flags, properties = frames.parse_header(payload)
    content = Content(flags, properties, b"")

    assert size == 5
    assert content.headers() == HEADERS
    assert content.strings() == {
        "content_type": "text/plain",
        "correlation_id": "flow",
        "expiration": "60000",
        "message_id": "m1",
        "type": "t",
        "app_id": "other",
    }


def test_a_message_without_properties_has_none() -> None:
    _, flags, properties = frames.parse_header(
        pamqp.frame.marshal(header.ContentHeader(0, 0, commands.Basic.Properties()), 1)[7:-1]
    )

    content = Content(flags, properties, b"")

    assert (content.headers(), content.strings()) == ({}, {})


def test_what_announces_and_settles_messages_is_parsed() -> None:
    chance = random.Random(5)
    tag = chance.getrandbits(63)
    deliver = commands.Basic.Deliver("ctag", tag, False, "mb.evt", "a.b")
    returned = commands.Basic.Return(312, "NO_ROUTE", "mb.cmd.x", "a.b")

    assert frames.parse_deliver(_payload(deliver)) == (tag, "mb.evt", "a.b")
    assert frames.parse_return(_payload(returned)) == ("mb.cmd.x", "a.b")
    assert frames.parse_confirm(_payload(commands.Basic.Ack(tag, True))) == (tag, True)
    assert frames.parse_confirm(_payload(commands.Basic.Nack(tag, False))) == (tag, False)


def test_settlements_are_packed_as_pamqp_packs_them() -> None:
    assert frames.pack_ack(3, 9, multiple=True) == pamqp.frame.marshal(commands.Basic.Ack(9, True), 3)
    assert frames.pack_requeue(3, 9) == pamqp.frame.marshal(commands.Basic.Reject(9, True), 3)


def test_a_name_that_amqp_cannot_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 255 bytes"):
        frames.pack_publish(1, "mb.cmd.x", "é" * 128, mandatory=True)


def _payload(frame: commands.Basic.Deliver | commands.Basic.Return | commands.Basic.Ack | commands.Basic.Nack) -> bytes:
    return pamqp.frame.marshal(frame, 1)[7:-1]
