"""Results on standard output, everything else on standard error."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from mindbus.cli.language import translate
from mindbus.terminal import escape_controls

if TYPE_CHECKING:
    # Imported when something is drawn: JSON is not.
    from rich.console import Console, RenderableType
    from rich.table import Table

# Where nobody watches, a table is not squeezed into a terminal's width.
_UNSEEN_WIDTH = 200

T = TypeVar("T")


def console() -> "Console":
    """Standard output as it is now; made anew each time, since a test may put another in its place."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _UNSEEN_WIDTH, highlight=False, soft_wrap=False)


def errors() -> "Console":
    """Standard error, for people: where its reader has gone away, the work goes on, unseen."""
    from rich.console import Console

    class Commentary(Console):
        def on_broken_pipe(self) -> None:
            """Send the rest to nowhere, instead of ending the program as Rich does."""
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), self.file.fileno())

    return Commentary(stderr=True, width=None if sys.stderr.isatty() else _UNSEEN_WIDTH, highlight=False)


def show(*what: "RenderableType") -> None:
    console().print(*what)


def say(text: str) -> None:
    """Print a line of the command's own words, in the language of whoever reads it."""
    say_data(translate(text))


def say_data(text: str) -> None:
    """Print a line as it is, whatever brackets or colons it has; nothing in it reaches the terminal but as letters."""
    console().print(escape_controls(text), markup=False, emoji=False, soft_wrap=True)


def note(text: str, *, style: str | None = None) -> None:
    """Print a line to standard error: what goes on, what to look out for."""
    errors().print(escape_controls(translate(text)), style=style, markup=False, emoji=False, soft_wrap=True)


def write(text: str) -> None:
    """Print a piece of a text that goes on, at once; nothing in it reaches the terminal but as letters."""
    sys.stdout.write(escape_controls(text))
    sys.stdout.flush()


def show_result(result: T, text: str | Callable[[T], object], *, as_json: bool) -> None:
    """Print a command's result: as JSON where that was asked for, else as a line, or by a function that prints it."""
    if as_json:
        show_json(result)
    elif isinstance(text, str):
        say(text)
    else:
        text(result)


def show_json(value: Any) -> None:
    _write_json(value, indent=2)


def show_json_line(value: Any) -> None:
    """Print one document of a stream: a line of JSON, at once."""
    _write_json(value)


def _write_json(value: Any, indent: int | None = None) -> None:
    # Where an output cannot take every letter, JSON has another way to write it.
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=not is_unicode, indent=indent) + "\n")
    sys.stdout.flush()


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print a table, or that it is empty; cells are text, not markup."""
    listed = list(rows)
    if listed:
        show(table(columns, listed, title))
    else:
        say("None.")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> "Table":
    """A table whose title and cells are text, not markup."""
    from rich.table import Table
    from rich.text import Text

    named = Text(escape_controls(translate(title)), style="table.title") if title else None
    drawn = Table(title=named, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        drawn.add_column(translate(column), overflow="fold")
    for row in rows:
        drawn.add_row(*(_cell(cell) for cell in row))
    return drawn


def local_time(time: datetime) -> str:
    """A time as the clock here shows it, to the second."""
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def plain(value: Any) -> Any:
    """Models, in any nesting, as JSON knows them."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _cell(cell: object) -> "RenderableType":
    from rich.text import Text

    return cell if isinstance(cell, Text) else Text("" if cell is None else escape_controls(str(cell)))
