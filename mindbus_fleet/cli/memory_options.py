"""Options of the `memory` commands, and their parsing into metadata, filters and queries."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from bus_schema.envelope import explain
from bus_schema.glm import RetrieveKems
from bus_schema.kem import MAX_CONTENT_BYTES, Kem, KemVisibility
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.cli.errors import CommandError, UsageError
from mindbus.sdk.kem_filters import Filter, MalformedFilter, UnsupportedQuery, parse_filter, query_from

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
ModelT = TypeVar("ModelT", bound=BaseModel)


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


def valid(kind: type[ModelT], fields: dict[str, Any]) -> ModelT:
    """Raises UsageError."""
    try:
        return kind.model_validate(fields)
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid


def parse_metadata(pairs: Sequence[str]) -> dict[str, Any]:
    """K=V is a text, K:=V whatever V is in JSON. Raises UsageError."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        is_json = key.endswith(":")
        if not equals or not key.rstrip(":"):
            raise UsageError(f"--meta {pair!r} is not K=V, nor K:=JSON")
        try:
            found[key.removesuffix(":")] = json.loads(value) if is_json else value
        except ValueError as wrong:
            raise UsageError(f"--meta {pair!r}: what follows := is not JSON: {wrong}") from wrong
    return found


def filter_of(text: str | None) -> Filter:
    """Raises UsageError, which shows the position."""
    try:
        return parse_filter(text or "")
    except MalformedFilter as malformed:
        raise UsageError(str(malformed)) from malformed


def query_of(text: str | None, **fields: Any) -> KemQuery:
    """A question with the filter's conditions in it. Raises UsageError where a question cannot say them."""
    try:
        return query_from(text or "", **fields)
    except (MalformedFilter, UnsupportedQuery) as wrong:
        raise UsageError(str(wrong)) from wrong
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid


async def get_kem(kem_id: str, bus: Client) -> Kem:
    """Raises CommandError where there is none that the client may read, UsageError where it is no id."""
    page = await bus.request(RetrieveKems(query=query_of(None, ids=(kem_id,)), page_size=1))
    if not page.items:
        raise CommandError(f"there is no unit {kem_id}, or it is not yours to read", Code.NOT_FOUND)
    return page.items[0].kem
