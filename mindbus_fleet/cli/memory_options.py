"""What the commands on memory can be told."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bus_schema.kem import MAX_CONTENT_BYTES, KemVisibility
from mindbus.cli.errors import UsageError

KemIdArgument = Annotated[str, typer.Argument(metavar="ID", help="Such as kem_0192….")]
Text = Annotated[str | None, typer.Option("--text", help="What it says.")]
File = Annotated[
    Path | None, typer.Option("--file", exists=True, dir_okay=False, readable=True, help="A file with what it says.")
]
Meta = Annotated[
    list[str] | None, typer.Option("--meta", metavar="K=V", help="Metadata; K:=JSON for a number, a list, true.")
]
ContentType = Annotated[str | None, typer.Option("--content-type", help="Such as text/markdown.")]
Visibility = Annotated[KemVisibility | None, typer.Option("--visibility", help="Who may read it; new ones: public.")]
Reader = Annotated[
    list[str] | None, typer.Option("--reader", metavar="IDENTITY", help="May read it, with visibility readers.")
]
Writer = Annotated[list[str] | None, typer.Option("--writer", metavar="IDENTITY", help="May read and change it.")]
FilterText = Annotated[
    str | None,
    typer.Option("--filter", metavar="FILTER", help="metadata.KEY=VALUE, kem_id=ID, joined by AND, OR, ( )."),
]


def content_of(text: str | None, file: Path | None) -> str:
    """What a unit is to say. Raises UsageError."""
    if (text is None) == (file is None):
        raise UsageError("say what it is to say: by --text, or by --file")
    if file is None:
        return str(text)
    try:
        # A larger one is refused by its size, so there is no need to read all of it.
        with file.open("rb") as opened:
            return opened.read(MAX_CONTENT_BYTES + 4).decode("utf-8-sig")
    except UnicodeDecodeError as undecodable:
        if file.stat().st_size > MAX_CONTENT_BYTES:
            raise UsageError(
                f"{file} has more than {MAX_CONTENT_BYTES} bytes: use mindbus memory import"
            ) from undecodable
        raise UsageError(f"{file} is not text in UTF-8: save it in that encoding") from undecodable
    except OSError as unreadable:
        raise UsageError(f"{file} cannot be read: {unreadable.strerror}") from unreadable


def rights_of(visibility: str | None, readers: list[str] | None, writers: list[str] | None) -> dict[str, Any]:
    """As far as anything was said of them; who names readers means that they alone read."""
    rights: dict[str, Any] = {}
    if visibility is not None or readers:
        rights["visibility"] = visibility or "readers"
    if readers:
        rights["readers"] = readers
    if writers:
        rights["writers"] = writers
    return rights


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """Those of which anything was said."""
    return {name: value for name, value in fields.items() if value is not None}
