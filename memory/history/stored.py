"""A history as it is kept: one JSON array of messages in OpenAI's format."""

import hashlib
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bus_schema.history import HistoryMessage
from memory.history.refusals import BrokenHistory

_ARRAY = TypeAdapter(list[dict[str, Any]])
_MESSAGES = TypeAdapter(tuple[HistoryMessage, ...])


def written(messages: Sequence[HistoryMessage]) -> bytes:
    """Letters as they are, so that who looks into the store can read them."""
    return _ARRAY.dump_json([message.as_stored() for message in messages])


def read(key: str, text: bytes) -> tuple[HistoryMessage, ...]:
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
