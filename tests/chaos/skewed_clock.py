"""A wall clock that is wrong by as many seconds as a file says; monotonic clocks are right.

Imported before anything else in a process whose clock is to be set while it runs.
"""

import datetime as module
import os
import time
from datetime import datetime as _Right  # noqa: N812  # the one whose place another takes
from pathlib import Path
from typing import Any, Self

CLOCK = "CHAOS_CLOCK"
_READ_EVERY_S = 0.05
_right_time, _right_time_ns = time.time, time.time_ns


class _Skew:
    """What the file says."""

    def __init__(self, file: Path) -> None:
        self._file, self._seconds, self._read_at = file, 0.0, 0.0

    @property
    def seconds(self) -> float:
        if time.monotonic() - self._read_at > _READ_EVERY_S:
            self._read_at = time.monotonic()
            try:
                self._seconds = float(self._file.read_text() or 0)
            except FileNotFoundError:
                self._seconds = 0.0
        return self._seconds


class _AnyDatetime(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Right)


def set_wrong(file: Path) -> None:
    """Have this process tell the wrong time."""
    skew = _Skew(file)

    class Skewed(_Right, metaclass=_AnyDatetime):
        @classmethod
        def now(cls, tz: module.tzinfo | None = None) -> Self:
            return super().now(tz) + module.timedelta(seconds=skew.seconds)

        @classmethod
        def utcnow(cls) -> Self:
            return super().utcnow() + module.timedelta(seconds=skew.seconds)

    Skewed.__name__ = Skewed.__qualname__ = "datetime"
    Skewed.__module__ = "datetime"
    replacing: Any = module
    replacing.datetime = Skewed
    time.time = lambda: _right_time() + skew.seconds
    time.time_ns = lambda: _right_time_ns() + int(skew.seconds * 1e9)


if CLOCK in os.environ:
    set_wrong(Path(os.environ[CLOCK]))
