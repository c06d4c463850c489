"""Structured logs: a fixed event name, fields beside it."""

import logging
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

_SIGNED_QUERY = re.compile(r"\?[^\s'\"<>]*X-Amz-[^\s'\"<>]*", re.IGNORECASE)
# They log whole addresses, or messages that may contain one.
_TALKATIVE = (
    *("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy"),
    *("aiormq.connection", "aiormq.channel"),
)


def configure_logs(level: str, log_format: str) -> None:
    """Send all logs to standard error, which leaves standard output to results."""
    import structlog

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
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        # Whatever standard error is when something is logged: whoever swaps it may close it afterwards.
        logger_factory=lambda *_names: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def logger() -> "FilteringBoundLogger":
    """A logger; fields go beside the event name.

    Where nobody has configured structlog, as in a program that only uses the library, events go to the logger `mindbus`
    of the standard library, which shows warnings and errors alone unless the program says otherwise.
    """
    # Imported here: it brings the formatting of tracebacks along, which takes longer than the rest of the library.
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


def _as_record(_logger: object, _method: str, fields: "EventDict") -> tuple[tuple[str], dict[str, Any]]:
    event, exc_info = str(fields.pop("event")), fields.pop("exc_info", None)
    line = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
    return (line,), {"exc_info": exc_info} if exc_info else {}


def without_signatures(text: str) -> str:
    """The text with the queries of signed addresses removed."""
    return _SIGNED_QUERY.sub("?…", text)


def keep_signatures_out() -> None:
    """Redact signed addresses in the logs of other libraries, at all levels; idempotent."""
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_redact)


def _redact(record: logging.LogRecord) -> bool:
    record.msg, record.args = without_signatures(record.getMessage()), ()
    return True
