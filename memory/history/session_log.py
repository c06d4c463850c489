"""Log per chat, apart from the fleet's: requests, messages stored and histories loaded (spec 001)."""

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

from bus_schema.history import HistoryMessage, subagent_of
from memory.history.redaction import redacted
from memory.history.session_files import SessionFiles
from mindbus.logs import logger
from mindbus.tasks import end
from mindbus.terminal import escape_controls

_MAX_QUEUED = 10_000
_AT_ONCE = 500
_LAST_WITHIN_S = 5.0
_MAX_SHOWN = 300
# Long enough to recognise a secret whose end is not shown.
_MAX_REDACTED = 4000
_RULE = "=" * 80
_SAVED = {"user": "request saved", "assistant": "answer saved", "system": "instruction saved"}
_SAVED_OF_SUBAGENT = {"user": "task saved", "assistant": "final answer saved", "system": "instruction saved"}


class SessionLog:
    """Queue of lines and a task that writes them in a thread; on a slow disk lines are lost, callers never wait."""

    def __init__(self, files: SessionFiles, clock: Callable[[], datetime]) -> None:
        self._files, self._clock = files, clock
        self._queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue(_MAX_QUEUED)
        self._writing: asyncio.Task[None] | None = None

    def of(self, chat_id: str) -> FilteringBoundLogger:
        """Logger of a chat."""
        log: FilteringBoundLogger = structlog.wrap_logger(
            _Lines(lambda line: self._add(chat_id, line)),
            processors=[self._stamped, _cleaned, _rendered],
            wrapper_class=structlog.make_filtering_bound_logger("info"),
        )
        return log

    def start(self) -> None:
        """Start writing; idempotent."""
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_lines(), name="session log")

    async def stop(self) -> None:
        """Write what is queued, then stop."""
        writing, self._writing = self._writing, None
        if writing is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WITHIN_S):
                    await self._queue.join()
            await end(writing)

    async def remove(self, chat_id: str | None) -> int:
        """Delete the files of a chat, or of all; returns their number. Raises OSError."""
        await self._queue.join()
        return await asyncio.to_thread(self._files.remove, chat_id)

    def _add(self, chat_id: str, line: str) -> None:
        try:
            self._queue.put_nowait((chat_id, line))
        except asyncio.QueueFull:
            logger().warning("session log is behind, a line is lost", chat_id=chat_id)

    async def _write_lines(self) -> None:
        while True:
            lines = [await self._queue.get()]
            with suppress(asyncio.QueueEmpty):
                while len(lines) < _AT_ONCE:
                    lines.append(self._queue.get_nowait())
            try:
                await asyncio.to_thread(self._files.write, lines)
            except OSError as error:
                logger().warning("session log not written", lines=len(lines), reason=str(error))
            finally:
                for _line in lines:
                    self._queue.task_done()

    def _stamped(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {"time": self._clock().astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")} | dict(event)


class _Lines:
    """Logger interface for structlog."""

    def __init__(self, add: Callable[[str], None]) -> None:
        self.info = add


def _cleaned(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: _shortened(value) if isinstance(value, str) else value for name, value in event.items()}


def _shortened(text: str) -> str:
    clean = redacted(text[:_MAX_REDACTED])
    return clean if len(clean) <= _MAX_SHOWN else f"{clean[:_MAX_SHOWN]}…"


def _rendered(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    time, title, fields = event.pop("time"), event.pop("event"), event
    values = "".join(f"  {name}={json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    return escape_controls(f"{time} - {title}{values}")


def log_request(log: FilteringBoundLogger, text: str) -> None:
    """Log a request of the user."""
    log.info(_RULE)
    log.info("new request", text=text)


def log_appended(log: FilteringBoundLogger, key: str, messages: Iterable[HistoryMessage]) -> None:
    """Log messages that were appended to a history."""
    is_chat = subagent_of(key) is None
    bound = log.bind(**_subagent_field(key))
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


def log_loaded(log: FilteringBoundLogger, key: str, shown: int, length: int) -> None:
    """Log that a history was read for a model."""
    fields = _subagent_field(key)
    log.info("history loaded", **fields, messages=shown, kept=length)
    if not length:
        log.info("history is empty", **fields)


def log_cleared(log: FilteringBoundLogger, key: str, length: int) -> None:
    """Log that a history was cleared."""
    log.info("history cleared", **_subagent_field(key), messages=length)


def _subagent_field(key: str) -> dict[str, str]:
    subagent = subagent_of(key)
    return {} if subagent is None else {"subagent": subagent}
