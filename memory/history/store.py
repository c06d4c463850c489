"""Interface of the history stores: compare-and-set of a JSON array of messages per key; their errors."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from bus_schema.history import HistoryMessage
from bus_schema.replies import Code
from memory.errors import RedisAway
from mindbus.errors import Rejected, TemporaryFailure


class BrokenHistory(Rejected, code=Code.CONFLICT):
    """The value under this key is not a list of messages; find out which program writes it, then clear the key."""


class HistoriesAway(TemporaryFailure, RedisAway):
    """The Redis of the histories does not answer; nothing is half written, so ask again once it does."""

    def __init__(self, reason: str) -> None:
        # Readers wait for the answer: try again soon.
        super().__init__(f"{self.__doc__} ({reason})", timedelta(seconds=1))


# How long the id of a dropped message is known, so that a redelivery does not add it again.
KNOWN_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """Replacement of the text under `key`, if its digest is `known`, by `text`; an empty text deletes it.

    `added` and `dropped` are the ids of messages that are only in the new, or only in the old text.
    """

    key: str
    known: str
    text: bytes
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class HistoryStore(Protocol):
    """Durable texts by key. All methods raise HistoriesAway or DatabaseAway."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def read(self, key: str, known_digest: str | None) -> bytes | None:
        """The text, empty if there is none; None if its digest is `known`."""

    async def replace(self, change: HistoryChange) -> frozenset[str] | None:
        """Apply a change, atomically: None, or else the ids that were there before, none if the digest differs."""

    async def keys(self, chat_id: str | None, after: str, limit: int) -> list[str]:
        """Keys after `after` in alphabetical order, of one chat or of all."""

    async def forget_old(self) -> None:
        """Delete marks that are older than KNOWN_FOR."""


_ARRAY = TypeAdapter(list[dict[str, Any]])
_MESSAGES = TypeAdapter(tuple[HistoryMessage, ...])


def dump_message(message: HistoryMessage) -> bytes:
    """Stored form of a message: JSON in OpenAI's format, non-ASCII characters as they are."""
    return to_json(message.as_stored())


def as_array(dumped: Iterable[bytes]) -> bytes:
    """Stored form of a history: one JSON array of messages, nothing where there are none."""
    text = b",".join(dumped)
    return b"[%b]" % text if text else b""


def parse_messages(key: str, text: bytes) -> tuple[HistoryMessage, ...]:
    """Messages of a stored history; empty if there is none. Raises BrokenHistory.

    Messages stored before they had ids get ids by position, which the next append keeps.
    """
    if not text:
        return ()
    try:
        messages = _ARRAY.validate_json(text)
        return _MESSAGES.validate_python([{"id": f"old-{place}"} | fields for place, fields in enumerate(messages)])
    except ValidationError as invalid:
        raise BrokenHistory(key=key, reason=str(invalid.errors(include_input=False, include_url=False)[0])) from invalid


def digest_of(text: bytes) -> str:
    """Version of a stored history: SHA-1, which Redis can compute too; not for security."""
    return hashlib.sha1(text, usedforsecurity=False).hexdigest() if text else ""


def mark_of(key: str, message_id: str) -> str:
    """Hash by which a dropped message is recognised; it tells neither chat nor content."""
    return hashlib.sha256(f"{key}|{message_id}".encode()).hexdigest()
