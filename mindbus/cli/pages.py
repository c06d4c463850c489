"""Commands that are answered in pages, with a progress bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pydantic import BaseModel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bus_schema.messages import Command
from mindbus.cli.console import errors
from mindbus.cli.session import on_the_bus

PageT = TypeVar("PageT", bound=BaseModel)
# A store of millions takes its time.
WITHIN_S = 3600.0


async def all_pages(
    what: str,
    page_after: Callable[[str | None], Command[PageT]],
    done_by: Callable[[list[PageT]], tuple[int, int]],
    by: str,
) -> list[PageT]:
    """All pages of a work that is too long for one answer, with a progress bar for who watches."""
    pages: list[PageT] = []
    cursor: str | None = None
    async with on_the_bus(by) as bus:
        with progress_of(what) as tell:
            while not pages or cursor is not None:
                pages.append(await bus.request(page_after(cursor), timeout_s=WITHIN_S))
                cursor = getattr(pages[-1], "next_cursor", None)
                tell(*done_by(pages))
    return pages


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for who watches: tell it how much is done, of how much."""
    console = errors()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
