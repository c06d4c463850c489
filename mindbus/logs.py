"""Structured logs: a fixed event name, fields beside it."""

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO, cast

from mindbus.redaction import redact_other_logs, without_secrets

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor


_LONGEST_FOREIGN = 2000


class UnfailingStream:
    """A text stream that drops what cannot be written: a full disk must not end whoever has something to log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class LogsOfLibraries(logging.Handler):
    """Warnings and errors of other libraries, as events of ours: in the same format, redacted, of a bounded length.

    Where the standard library's logging has a handler, libraries that would configure it themselves do not: that of MCP
    adds one which highlights each line, and needs minutes for a long one.
    """

    @classmethod
    def take(cls) -> None:
        """Unless they go elsewhere already."""
        if not logging.getLogger().handlers:
            logging.getLogger().addHandler(cls(logging.WARNING))

    def emit(self, record: logging.LogRecord) -> None:
        tell = logger().warning if record.levelno < logging.ERROR else logger().error
        try:
            message = record.getMessage()
            event = message if len(message) <= _LONGEST_FOREIGN else f"{message[:_LONGEST_FOREIGN]}…"
            tell(event, library=record.name, exc_info=record.exc_info)
        except Exception:  # noqa: BLE001  # as all handlers do: whoever logs has done nothing wrong
            self.handleError(record)


def configure_logs(level: str, log_format: str) -> None:
    """Send all logs to standard error, which leaves standard output to results."""
    import structlog

    global _deferred
    _deferred = None
    redact_other_logs()
    LogsOfLibraries.take()

    # Plain tracebacks: those with local variables would put messages and keys into the log.
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    is_json = log_format == "json"
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        *([structlog.processors.format_exc_info, structlog.processors.JSONRenderer()] if is_json else [console]),
        _redact,
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        # Whatever standard error is when something is logged: whoever swaps it may close it afterwards.
        logger_factory=lambda *_names: structlog.PrintLogger(cast("TextIO", UnfailingStream(sys.stderr))),
        cache_logger_on_first_use=False,
    )


def _redact(_logger: object, _method: str, line: "EventDict | str") -> str:
    return without_secrets(str(line))


_deferred: "DeferredLogger | None" = None


def configure_logs_later(level: str, log_format: str) -> None:
    """`configure_logs` when something is logged first: a process that logs next to nothing goes without structlog."""
    global _deferred
    _deferred = DeferredLogger(level, log_format)
    LogsOfLibraries.take()


class DeferredLogger:
    """A logger that imports structlog for the first event of its level or above."""

    def __init__(self, level: str, log_format: str) -> None:
        self._level, self._format = level, log_format
        self._least = int(logging.getLevelName(level.upper()))

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """The method of that name, such as `info`; below the level one that does nothing."""
        if logging.getLevelName("ERROR" if method == "exception" else method.upper()) < self._least:
            return _ignore
        configure_logs(self._level, self._format)
        found: Callable[..., Any] = getattr(logger(), method)
        return found


def _ignore(*_event: object, **_fields: object) -> None:
    pass


def logger() -> "FilteringBoundLogger":
    """A logger; fields go beside the event name.

    Where nobody has configured structlog, as in a program that only uses the library, events go to the logger `mindbus`
    of the standard library, which shows warnings and errors alone unless the program says otherwise.
    """
    # Imported here: it brings the formatting of tracebacks along, which takes longer than the rest of the library.
    if _deferred is not None:
        return cast("FilteringBoundLogger", _deferred)
    import structlog

    log: FilteringBoundLogger = structlog.get_logger() if structlog.is_configured() else _standard_logger()
    return log


@cache
def _standard_logger() -> "FilteringBoundLogger":
    import structlog

    log: FilteringBoundLogger = structlog.wrap_logger(
        logging.getLogger("mindbus"),
        processors=[structlog.stdlib.filter_by_level, structlog.contextvars.merge_contextvars, _as_record],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return log


class RepeatedErrors:
    """Errors of which there may be thousands: logs the first, and at the end of `within_s` seconds how many came since.

    Equal are those with the same fields; `of_first` are fields of the first alone.
    """

    def __init__(self, event: str, within_s: float = 10.0) -> None:
        self._event, self._within_s = event, within_s
        self._repeated: dict[tuple[object, ...], int] = {}

    def log(self, of_first: dict[str, object], **fields: object) -> None:
        key = tuple(fields.values())
        if key in self._repeated:
            self._repeated[key] += 1
            return
        self._repeated[key] = 0
        logger().error(self._event, **of_first, **fields)
        asyncio.get_running_loop().call_later(self._within_s, self._sum_up, key, fields)

    def _sum_up(self, key: tuple[object, ...], fields: dict[str, object]) -> None:
        if repeated := self._repeated.pop(key):
            logger().error(self._event, repeated=repeated, **fields)


def _as_record(_logger: object, _method: str, fields: "EventDict") -> tuple[tuple[str], dict[str, Any]]:
    event, exc_info = str(fields.pop("event")), fields.pop("exc_info", None)
    line = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
    return (without_secrets(line),), {"exc_info": exc_info} if exc_info else {}
