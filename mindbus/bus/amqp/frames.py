"""Frames of AMQP 0-9-1 that every message needs, packed and parsed by hand, and their output; pamqp does the rest.

Numbers and layouts: the AMQP 0-9-1 specification, §4.2 (frames, content) and §1.8 (class basic).
"""

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Any

from pamqp import decode, encode

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_HEAD = Struct(">BHI")
FRAME_END = b"\xce"
# Head and end of a frame, bytes.
FRAME_EXTRA = FRAME_HEAD.size + 1
HEARTBEAT_FRAME = FRAME_HEAD.pack(HEARTBEAT, 0, 0) + FRAME_END

PUBLISH, RETURN, DELIVER = 60 << 16 | 40, 60 << 16 | 50, 60 << 16 | 60
ACK, REJECT, NACK = 60 << 16 | 80, 60 << 16 | 90, 60 << 16 | 120
_BASIC = 60
_METHOD = Struct(">I")
_TAG = Struct(">Q")
_CONTENT = Struct(">HHQH")
_SETTLE = Struct(">BHIIQBB")
_SETTLE_SIZE = 13
_HEADERS, _DELIVERY_MODE = 1 << 13, 1 << 12
# Short strings of the property list by flag, in the order of the wire; between them come the fields named above, and
# these, which MindBus does not use: priority and timestamp, in bytes.
_CONTENT_TYPE, _CONTENT_ENCODING = 1 << 15, 1 << 14
_PRIORITY, _TIMESTAMP = 1 << 11, 1 << 6
_STRINGS_BEFORE = ((_CONTENT_TYPE, "content_type"), (_CONTENT_ENCODING, "content_encoding"))
_STRINGS_AFTER = (
    (1 << 10, "correlation_id"),
    (1 << 9, "reply_to"),
    (1 << 8, "expiration"),
    (1 << 7, "message_id"),
    (_TIMESTAMP, ""),
    (1 << 5, "type"),
    (1 << 4, "user_id"),
    (1 << 3, "app_id"),
)


@dataclass(slots=True)
class Content:
    """Properties and body of a message, as the wire has them until somebody asks."""

    flags: int
    properties: bytes
    body: bytes

    def headers(self) -> dict[str, Any]:
        """The header table; empty without one."""
        if not self.flags & _HEADERS:
            return {}
        return dict(decode.field_table(self.properties[self._headers_at() :])[1])

    def strings(self) -> dict[str, str]:
        """The properties that are strings, by name; undecodable bytes are replaced."""
        found: dict[str, str] = {}
        at = 0
        for flag, name in _STRINGS_BEFORE:
            if self.flags & flag:
                at, found[name] = _short_string(self.properties, at)
        if self.flags & _HEADERS:
            at += 4 + int.from_bytes(self.properties[at : at + 4], "big")
        at += bool(self.flags & _DELIVERY_MODE) + bool(self.flags & _PRIORITY)
        for flag, name in _STRINGS_AFTER:
            if not self.flags & flag:
                continue
            if flag == _TIMESTAMP:
                at += 8
            else:
                at, found[name] = _short_string(self.properties, at)
        return found

    def _headers_at(self) -> int:
        at = 0
        for flag, _ in _STRINGS_BEFORE:
            if self.flags & flag:
                at += 1 + self.properties[at]
        return at


def pack_properties(strings: dict[str, str | None], headers: dict[str, Any], *, is_durable: bool) -> bytes:
    """Flags and property list of a message. Raises ValueError where a string has more than 255 bytes."""
    flags, parts = _DELIVERY_MODE, []
    for flag, name in _STRINGS_BEFORE:
        if value := strings.get(name):
            flags |= flag
            parts.append(_pack_short(value))
    if headers:
        flags |= _HEADERS
        parts.append(encode.field_table(headers))
    parts.append(b"\2" if is_durable else b"\1")
    for flag, name in _STRINGS_AFTER:
        if name and (value := strings.get(name)):
            flags |= flag
            parts.append(_pack_short(value))
    return flags.to_bytes(2, "big") + b"".join(parts)


def pack_publish(channel: int, exchange: str, routing_key: str, *, mandatory: bool) -> bytes:
    """The method frame of a message, which its content follows."""
    return pack(METHOD, channel, _publish_method(exchange, routing_key, mandatory))


def pack_content(channel: int, properties: bytes, body: bytes, most: int) -> bytes:
    """The header frame of a message, and its body in frames of at most `most` bytes each."""
    header = _CONTENT.pack(_BASIC, 0, len(body), int.from_bytes(properties[:2], "big")) + properties[2:]
    pieces = [pack(BODY, channel, body[at : at + most]) for at in range(0, len(body), most)]
    return b"".join([pack(HEADER, channel, header), *pieces])


def pack_ack(channel: int, tag: int, *, multiple: bool) -> bytes:
    """Acknowledge a delivery; with `multiple`, all before it that are not settled, too."""
    return _SETTLE.pack(METHOD, channel, _SETTLE_SIZE, ACK, tag, multiple, 0xCE)


def pack_requeue(channel: int, tag: int) -> bytes:
    """Give a delivery back to its queue."""
    return _SETTLE.pack(METHOD, channel, _SETTLE_SIZE, REJECT, tag, 1, 0xCE)


def method_id(payload: bytes) -> int:
    """Class and method of a method frame, as one number."""
    number: int = _METHOD.unpack_from(payload)[0]
    return number


def parse_deliver(payload: bytes) -> tuple[int, str, str]:
    """Delivery tag, exchange, routing key of `basic.deliver`."""
    at = 5 + payload[4]
    tag: int = _TAG.unpack_from(payload, at)[0]
    at, exchange = _short_string(payload, at + 9)
    return tag, exchange, _short_string(payload, at)[1]


def parse_return(payload: bytes) -> tuple[str, str]:
    """Exchange and routing key of `basic.return`."""
    at, _text = _short_string(payload, 6)
    at, exchange = _short_string(payload, at)
    return exchange, _short_string(payload, at)[1]


def parse_confirm(payload: bytes) -> tuple[int, bool]:
    """Delivery tag of `basic.ack` or `basic.nack`, and whether it stands for all before it, too."""
    tag: int = _TAG.unpack_from(payload, 4)[0]
    return tag, bool(payload[12] & 1)


def parse_header(payload: bytes) -> tuple[int, int, bytes]:
    """Body size in bytes, flags, property list of a content header."""
    _class, _weight, size, flags = _CONTENT.unpack_from(payload)
    return size, flags, payload[_CONTENT.size :]


@lru_cache(1024)
def _publish_method(exchange: str, routing_key: str, mandatory: bool) -> bytes:
    return _METHOD.pack(PUBLISH) + b"\0\0" + _pack_short(exchange) + _pack_short(routing_key) + bytes([mandatory])


def pack(kind: int, channel: int, payload: bytes) -> bytes:
    return FRAME_HEAD.pack(kind, channel, len(payload)) + payload + FRAME_END


def _pack_short(value: str) -> bytes:
    data = value.encode()
    if len(data) > 255:
        raise ValueError(f"an AMQP name or property has at most 255 bytes: {value[:40]}…")
    return bytes([len(data)]) + data


def _short_string(data: bytes, at: int) -> tuple[int, str]:
    end = at + 1 + data[at]
    return end, data[at + 1 : end].decode(errors="replace")


class Output:
    """Gathers what is written within one turn.

    `writable` is cleared while the socket or the broker takes no more. A message's body goes in frames of at most
    `most_in_frame` bytes.
    """

    def __init__(self, most_in_frame: int) -> None:
        self.most_in_frame = most_in_frame
        self.writable = asyncio.Event()
        self.has_written = False
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._pauses: set[str] = set()
        self._error: Exception = ConnectionError("not connected")

    def open(self, transport: asyncio.Transport) -> None:
        """Write to this transport from now on."""
        self._transport = transport
        self.writable.set()

    def pause(self, reason: str) -> None:
        """Let nobody publish until this reason is gone."""
        self._pauses.add(reason)
        self.writable.clear()

    def resume(self, reason: str) -> None:
        """Let everybody publish again, unless there is another reason not to."""
        self._pauses.discard(reason)
        if not self._pauses:
            self.writable.set()

    def fail(self, error: Exception) -> None:
        """Refuse what is written from now on; whoever waits for the socket goes on, and sees the error."""
        self._transport, self._error = None, error
        self._unsent.clear()
        self.writable.set()

    def write(self, data: bytes) -> None:
        """Queue whole frames. Raises the error that the connection was lost by."""
        if self._transport is None:
            raise self._error
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self.flush)
        self._unsent.append(data)

    def flush(self) -> None:
        """Write what is queued."""
        if self._transport is not None and self._unsent:
            self._transport.write(self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent))
            self._unsent.clear()
            self.has_written = True
