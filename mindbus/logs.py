"""Structured logs: a fixed event name, fields beside it."""

import logging
import sys

import structlog
from structlog.typing import FilteringBoundLogger


def configure_logs(level: str, log_format: str) -> None:
    """Send all logs to standard error, which leaves standard output to results."""
    # Plain tracebacks: those with local variables would put messages and keys into the log.
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    is_json = log_format == "json"
    processors: list[structlog.typing.Processor] = [
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


def logger() -> FilteringBoundLogger:
    """The logger of whoever asks; fields go beside the event name."""
    log: FilteringBoundLogger = structlog.get_logger()
    return log
