"""Publishes what no client of ours would: broken, foreign, forged messages."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aio_pika

from bus_schema.envelope import CONTENT_TYPE
from bus_schema.ids import uuid7
from mindbus.bus.topology_admin import user_of


def an_envelope(wire_type: str = "mb.cmd.greeter.greet.v1", data: Any = None, **changes: Any) -> dict[str, Any]:
    """A valid command to the greeter, as JSON; override what matters."""
    message_id = str(uuid7())
    return {
        "specversion": "1.0",
        "id": message_id,
        "source": "/mb/test/1",
        "type": wire_type,
        "time": "2026-01-01T00:00:00Z",
        "correlationid": message_id,
        "mbkind": "event" if wire_type.startswith("mb.evt.") else "command",
        "mbrequester": "user.test",
        "data": {"name": "raw"} if data is None else data,
    } | changes


def properties_for(envelope: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The AMQP properties that agree with it."""
    return {
        "message_id": envelope["id"],
        "type": envelope["type"],
        "correlation_id": envelope["correlationid"],
        "reply_to": envelope.get("mbreplyto"),
        "content_type": CONTENT_TYPE,
        "delivery_mode": 2,
    } | changes


class RawPublisher:
    def __init__(self, channel: aio_pika.abc.AbstractChannel, user: str) -> None:
        self._channel, self._user = channel, user

    async def envelope(self, envelope: dict[str, Any], service: str = "greeter", **changes: Any) -> None:
        """Publish an envelope as the command that it says it is."""
        _, _, domain, action, _ = envelope["type"].split(".")
        body = json.dumps(envelope).encode()
        await self.body(body, f"mb.cmd.{service}", f"cmd.{domain}.{action}", **properties_for(envelope, **changes))

    async def body(self, body: bytes, exchange: str, routing_key: str, **properties: Any) -> None:
        """Publish any bytes, anywhere."""
        target = await self._channel.get_exchange(exchange, ensure=False)
        await target.publish(aio_pika.Message(body, **{"user_id": self._user} | properties), routing_key)


@asynccontextmanager
async def raw_publisher(amqp_url: str) -> AsyncIterator[RawPublisher]:
    async with await aio_pika.connect(amqp_url) as connection, connection.channel(on_return_raises=True) as channel:
        yield RawPublisher(channel, user_of(amqp_url))
