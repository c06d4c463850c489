"""Envelopes for programs that have a connection of their own to RabbitMQ, such as FastStream's or Celery's."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from bus_schema.envelope import Envelope, from_wire
from bus_schema.messages import Command, Message, message_class
from bus_schema.replies import Reply
from mindbus.bus.connection import find_broker, new_sender
from mindbus.bus.permissions import instance_mark
from mindbus.bus.sender import in_time
from mindbus.bus.topology import reply_queue
from mindbus.bus.transport import properties_of
from mindbus.settings import Settings


class DataElsewhere(ValueError):
    """The data of this message is too large to travel; `mindbus.connect()` brings it back from the file store."""


@dataclass(frozen=True, slots=True)
class AddressedMessage:
    """Bytes with where to publish them, mandatory, persistent, with a confirm; `properties` have AMQP's names."""

    exchange: str
    routing_key: str
    body: bytes
    properties: dict[str, Any]

    @property
    def message_id(self) -> str:
        message_id: str = self.properties["message_id"]
        return message_id


class Envelopes:
    """Makes and reads the messages of one participant, whose replies come by `reply_key` to `reply_queue`."""

    def __init__(self, identity: str = "user.local", settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self._user = unquote(urlsplit(find_broker(settings)).username or "") or None
        self._sender = new_sender("client", identity, settings, instance_mark(self._user or ""))
        self.reply_key = self._sender.reply_key
        self.reply_queue = reply_queue(self.reply_key)

    async def command(
        self, command: Command[Any], *, wants_reply: bool = False, timeout_s: float = 30, message_id: str | None = None
    ) -> AddressedMessage:
        """Address a command; sent again under the same `message_id`, it has effect once. Raises NoTarget."""
        deadline = in_time(timeout_s) if wants_reply else None
        made = await self._sender.command(command, wants_reply=wants_reply, deadline=deadline, message_id=message_id)
        copies = properties_of(made.envelope, self._user)
        names = ("content_type", "message_id", "type", "correlation_id", "reply_to", "app_id", "user_id")
        properties = {name: value for name in names if (value := getattr(copies, name)) is not None}
        return AddressedMessage(made.exchange, made.routing_key, made.body, properties)


def read_message(body: bytes) -> tuple[Envelope, Message | Reply]:
    """The envelope of a delivery with what is in it, typed.

    Raises NotAnEnvelope, DataElsewhere, UnknownType; ValidationError where the data are not those of the type.
    """
    envelope = from_wire(body)
    if envelope.dataref is not None:
        raise DataElsewhere(DataElsewhere.__doc__)
    data = envelope.data or {}
    if envelope.type.startswith("mb.rpl."):
        return envelope, Reply.model_validate(data)
    return envelope, message_class(envelope.type).model_validate(data)
