"""Where histories are kept: each is a text that changes only for whoever knows it as it is."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from bus_schema.history import HistoryMessage
from memory.history.errors import BrokenHistory

# How long it is known that a message was there which is there no more: longer than anything repeats it.
KNOWN_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """Under `key`, what has the digest `known` becomes `text`, nothing where it is empty.

    `added` are the ids of the messages that are new in it, `dropped` of those that are in it no more.
    """

    key: str
    known: str
    text: bytes
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """Whether it was done; if not, something else is kept there now, or `gone` have been there before."""

    is_done: bool
    gone: frozenset[str] = frozenset()


DONE = ChangeOutcome(is_done=True)
CHANGED = ChangeOutcome(is_done=False)


class HistoryStore(Protocol):
    """Keeps texts through any crash. All of it raises HistoriesAway, or DatabaseAway."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def read(self, key: str, known: str | None) -> bytes | None:
        """What is kept, empty where nothing is; None where it still has the digest `known`."""

    async def replace(self, change: HistoryChange) -> ChangeOutcome:
        """All of it or nothing, whoever else writes."""

    async def keys(self, chat_id: str | None, after: str, limit: int) -> list[str]:
        """In their order, of one chat or of all."""

    async def forget_old(self) -> None:
        """Ids that nobody repeats any more."""


_ARRAY = TypeAdapter(list[dict[str, Any]])
_MESSAGES = TypeAdapter(tuple[HistoryMessage, ...])


def dump_messages(messages: Sequence[HistoryMessage]) -> bytes:
    """Letters as they are, so that who looks into the store can read them."""
    return _ARRAY.dump_json([message.as_stored() for message in messages])


def parse_messages(key: str, text: bytes) -> tuple[HistoryMessage, ...]:
    """The messages of a history, none where nothing is kept. Raises BrokenHistory.

    One that was written before messages had ids is given some by place, which the next append keeps.
    """
    if not text:
        return ()
    try:
        found = _ARRAY.validate_json(text)
        return _MESSAGES.validate_python([{"id": f"old-{place}"} | fields for place, fields in enumerate(found)])
    except ValidationError as invalid:
        raise BrokenHistory(key=key, reason=str(invalid.errors(include_input=False, include_url=False)[0])) from invalid


def digest_of(text: bytes) -> str:
    """By which a history is known to be still the same; SHA-1 is what Redis can count, and nobody is to be fooled."""
    return hashlib.sha1(text, usedforsecurity=False).hexdigest() if text else ""


def mark_of(key: str, message_id: str) -> str:
    """By which it is known again, yet which tells nobody of whom it was."""
    return hashlib.sha256(f"{key}|{message_id}".encode()).hexdigest()
