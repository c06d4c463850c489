"""What the log of a chat tells of its histories, in the kinds of lines of spec 001."""

from collections.abc import Iterable

from structlog.typing import FilteringBoundLogger

from bus_schema.history import HistoryMessage, subagent_of

_RULE = "=" * 80
_SAVED = {"user": "request saved", "assistant": "answer saved", "system": "instruction saved"}
_SAVED_OF_SUBAGENT = {"user": "task saved", "assistant": "final answer saved", "system": "instruction saved"}


def tell_received(log: FilteringBoundLogger, text: str) -> None:
    """The user has said something."""
    log.info(_RULE)
    log.info("new request", text=text)


def tell_kept(log: FilteringBoundLogger, key: str, messages: Iterable[HistoryMessage]) -> None:
    """These are new in a history."""
    is_chat = subagent_of(key) is None
    bound = log.bind(**_named(key))
    for message in messages:
        if message.role == "tool":
            bound.info("tool result saved", tool=message.name, text=message.content or "")
        elif message.tool_calls:
            names = [call.function.name for call in message.tool_calls]
            bound.info("tools called", tools=names, text=message.content or "")
        else:
            bound.info(
                _SAVED[message.role] if is_chat else _SAVED_OF_SUBAGENT[message.role], text=message.content or ""
            )


def tell_loaded(log: FilteringBoundLogger, key: str, shown: int, length: int) -> None:
    """A history has been read for a model."""
    named = _named(key)
    log.info("history loaded", **named, messages=shown, kept=length)
    if not length:
        log.info("history is empty", **named)


def tell_cleared(log: FilteringBoundLogger, key: str, length: int) -> None:
    """A history is no more."""
    log.info("history cleared", **_named(key), messages=length)


def _named(key: str) -> dict[str, str]:
    subagent = subagent_of(key)
    return {} if subagent is None else {"subagent": subagent}
