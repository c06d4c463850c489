"""A bar for whoever waits at a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from mindbus.cli.console import errors
from mindbus.sdk.sources import Phase, no_progress
from mindbus.sdk.sources import Progress as Tell

_LONG_BYTES = 8 * 1024 * 1024
_DOING: dict[Phase, str] = {
    "receive": "keeping it here",
    "send": "sending it",
    "register": "storage checks it",
    "read": "reading it",
}


@contextmanager
def progress_bar(*, is_wanted: bool) -> Iterator[Tell]:
    """On standard error, where that is a terminal, once something long is under way."""
    console = errors()
    if not is_wanted or not console.is_terminal:
        yield no_progress
        return
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
    tasks = {}

    def tell(phase: Phase, done_bytes: int, total_bytes: int | None) -> None:
        if phase not in tasks:
            if max(done_bytes, total_bytes or 0) < _LONG_BYTES:
                return
            tasks[phase] = bar.add_task(_DOING[phase], total=total_bytes)
            bar.start()
        # What storage is at, it does not tell before it is done.
        is_measured = phase != "register" or done_bytes > 0
        bar.update(tasks[phase], completed=done_bytes, total=total_bytes if is_measured else None)

    try:
        yield tell
    finally:
        bar.stop()
