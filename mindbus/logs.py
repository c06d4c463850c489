"""Structured logs: a fixed event name, fields beside it."""

import logging
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

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
    """A logger; fields go beside the event name."""
    # Imported here: it brings the formatting of tracebacks along, which takes longer than the rest of the library.
    import structlog

    log: FilteringBoundLogger = structlog.get_logger()
    return log


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
