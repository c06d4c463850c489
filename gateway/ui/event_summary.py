"""One-line summaries of events."""

from typing import Any, Final

from bus_schema.envelope import Envelope
from gateway.ui.i18n import Localizer

_MOST: Final = 160
# The first of these that an event has says most about it.
_TELLING: Final = ("preview", "message", "reason", "note", "content", "task", "response", "status", "about")

_WHOSE: Final = ("user_id", "to_user", "chat_id", "step_id", "card_name")


def lane_of(envelope: Envelope) -> str:
    """The service that published the event."""
    return envelope.service


def name_of(envelope: Envelope) -> str:
    """The event's name without its topic."""
    return envelope.type.split(".")[3]


def summary_of(i18n: Localizer, envelope: Envelope) -> str:
    data = envelope.data or {}
    parts = [_who(data), _what(i18n, data)]
    return " · ".join(part for part in parts if part)[:_MOST]


def _who(data: dict[str, Any]) -> str:
    return next((str(data[name]) for name in _WHOSE if data.get(name)), "")


def _what(i18n: Localizer, data: dict[str, Any]) -> str:
    for key in _TELLING:
        value = data.get(key)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
    items = data.get("items")
    if isinstance(items, list) and items:
        return i18n.count("summary.items", len(items))
    messages = data.get("message_ids")
    if isinstance(messages, list):
        return i18n.count("chat.messages", len(messages))
    artifact = data.get("artifact")
    if isinstance(artifact, dict):
        return f"{artifact.get('artifact_id', '')} · {i18n.bytes(int(artifact.get('size_bytes') or 0))}"
    return ""
