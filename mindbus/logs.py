"""Structured logs: a fixed event name, fields beside it."""

import logging
import sys

import structlog
from structlog.typing import FilteringBoundLogger


def configure_logs(level: str, log_format: str) -> None:
    """Send all logs to standard error, which leaves standard output to results."""
    renderer = structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info if log_format == "json" else _keep,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def logger() -> FilteringBoundLogger:
    """The logger of whoever asks; fields go beside the event name."""
    log: FilteringBoundLogger = structlog.get_logger()
    return log


def _keep(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event
