"""Redaction: values of secret settings, passwords in URLs and signed queries are masked in logs and errors."""

import logging
import re
import sys
import traceback
from collections.abc import Iterable
from types import TracebackType

MASK = "***"
# Not over a second question mark: of many in a row each would search all that follows.
_SIGNED_QUERY = re.compile(r"\?[^\s'\"<>?]*X-Amz-[^\s'\"<>]*", re.IGNORECASE)
_PASSWORD = re.compile(r"(?<=://)([^\s/@:'\"<>]*):[^\s/@'\"<>]+@")
_PARAMETER = re.compile(
    r"([?&](?:password|passwd|pwd|token|ticket|secret|signature|api[-_]?key)=)[^&\s'\"<>]+", re.IGNORECASE
)
_BEARER = re.compile(r"(\bBearer\s+)[\w.~+/-]{8,}=*", re.IGNORECASE)
# A shorter value, or one that is a word, cannot be told from the text around it.
_SHORTEST = 8
# They log whole addresses, or messages that may contain one.
_TALKATIVE = (
    *("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy"),
    *("aiormq.connection", "aiormq.channel"),
)
_secrets: set[str] = set()
_values: re.Pattern[str] | None = None


def add_secrets(values: Iterable[str]) -> None:
    """Mask these values from now on in this process, but those of fewer than eight characters and plain words."""
    global _values
    new = {value for value in values if len(value) >= _SHORTEST and not value.isalpha()} - _secrets
    if new:
        _secrets.update(new)
        _values = re.compile("|".join(map(re.escape, sorted(_secrets, key=len, reverse=True))))


def without_secrets(text: str) -> str:
    """The text with secrets masked."""
    text = _SIGNED_QUERY.sub("?…", text)
    if _values is not None:
        text = _values.sub(MASK, text)
    if "://" in text:
        text = _PASSWORD.sub(rf"\1:{MASK}@", text)
    return _BEARER.sub(rf"\1{MASK}", _PARAMETER.sub(rf"\1{MASK}", text))


def redact_other_logs() -> None:
    """Mask secrets in the logs of other libraries, at all levels; idempotent."""
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_redact)
    # Prints warnings and errors of libraries where nobody has configured logging.
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_FORMATTER)


def redact_tracebacks() -> None:
    """Mask secrets in the traceback with which the interpreter ends."""
    sys.excepthook = _print_redacted


class _RedactingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


_FORMATTER = _RedactingFormatter()


def _print_redacted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(without_secrets("".join(traceback.format_exception(kind, error, trace))))


def _redact(record: logging.LogRecord) -> bool:
    record.msg, record.args = without_secrets(record.getMessage()), ()
    return True
