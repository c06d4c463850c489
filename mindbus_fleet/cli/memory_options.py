"""Options of the `memory` commands, their parsing into metadata, filters and queries; units as text and tables."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel
from rich.text import Text

from bus_schema.glm import Explanation, FoundKem, MemoryStats, RetrieveKems
from bus_schema.kem import MAX_CONTENT_BYTES, Kem, KemVisibility
from bus_schema.kem_match import holds_at
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.cli.console import local_time, say_data, show_json, show_table
from mindbus.cli.errors import CommandError, UsageError, valid_options
from mindbus.cli.options import TIMES
from mindbus.sdk.kem_filters import Filter, MalformedFilter, UnsupportedQuery, parse_filter, query_from
from mindbus.terminal import escape_controls

KemIdArgument = Annotated[str, typer.Argument(metavar="ID", help="Such as kem_0192….")]
TextOption = Annotated[str | None, typer.Option("--text", help="The text.")]
File = Annotated[
    Path | None, typer.Option("--file", exists=True, dir_okay=False, readable=True, help="A file with the text.")
]
Meta = Annotated[
    list[str] | None, typer.Option("--meta", metavar="K=V", help="Metadata; K:=JSON for a number, a list, true.")
]
ContentType = Annotated[str | None, typer.Option("--content-type", help="Such as text/markdown.")]
Visibility = Annotated[
    KemVisibility | None, typer.Option("--visibility", help="Who may read it; default for a new one: public.")
]
Reader = Annotated[
    list[str] | None, typer.Option("--reader", metavar="IDENTITY", help="May read it, with visibility readers.")
]
Writer = Annotated[list[str] | None, typer.Option("--writer", metavar="IDENTITY", help="May read and change it.")]
FilterText = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="FILTER", help="metadata.KEY=VALUE, !=, <, >, kem_id=ID, joined by AND, OR, NOT, ( )."
    ),
]
ValidFrom = Annotated[
    datetime | None, typer.Option("--valid-from", formats=TIMES, help="It holds from then on; always without it.")
]
ValidTo = Annotated[datetime | None, typer.Option("--valid-to", formats=TIMES, help="It no longer holds from then on.")]
ExpiresAt = Annotated[datetime | None, typer.Option("--expires-at", formats=TIMES, help="It is deleted then.")]
Supersedes = Annotated[
    list[str] | None,
    typer.Option("--supersedes", metavar="ID", help="A unit that holds no longer, now that this does."),
]
ModelT = TypeVar("ModelT", bound=BaseModel)


def content_of(text: str | None, file: Path | None) -> str:
    """The content given by option or file. Raises UsageError."""
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


def times_of(**times: datetime | None) -> dict[str, datetime]:
    """Those of which anything was said; a time without a zone is this machine's."""
    return {name: time.astimezone() for name, time in given(times).items()}


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """Those of which anything was said."""
    return {name: value for name, value in fields.items() if value is not None}


def valid(kind: type[ModelT], fields: dict[str, Any]) -> ModelT:
    """Raises UsageError."""
    with valid_options():
        return kind.model_validate(fields)


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
        with valid_options():
            return query_from(text or "", **fields)
    except (MalformedFilter, UnsupportedQuery) as wrong:
        raise UsageError(str(wrong)) from wrong


async def get_kem(kem_id: str, bus: Client) -> Kem:
    """Raises CommandError where there is none that the client may read, UsageError where it is no id."""
    page = await bus.request(RetrieveKems(query=query_of(None, ids=(kem_id,)), page_size=1))
    if not page.items:
        raise CommandError(f"there is no unit {kem_id}, or it is not yours to read", Code.NOT_FOUND)
    return page.items[0].kem


_SHOWN_CHARACTERS = 160


def unit_json(found: FoundKem) -> dict[str, Any]:
    kem = found.kem.model_dump(mode="json", include={"content", "metadata", "source"})
    kem |= found.kem.model_dump(mode="json", include={"valid_from", "valid_to", "expires_at"}, exclude_none=True)
    explained = {} if found.explain is None else {"explain": _parts(found.explain)}
    others = {
        name: each for name, each in found.model_dump(mode="json", include={"twins", "contradicts"}).items() if each
    }
    return {"kem_id": found.kem.id, "score": found.score, **kem, **explained, **others}


def _parts(explain: Explanation) -> dict[str, Any]:
    """Evidence and parts of a score; what validity has to do with it only where it has."""
    parts = explain.model_dump(mode="json", include={"dense", "lexical", "words", "base", "by_words", "by_meaning"})
    return parts | explain.model_dump(mode="json", include={"validity", "raised", "raised_by"}, exclude_defaults=True)


def show_units(found: Iterable[FoundKem], *, is_explained: bool) -> None:
    columns = ("score", "unit", "what", *(("why",) if is_explained else ()))
    rows = ((_score(each), each.kem.id, _what(each), _why(each))[: len(columns)] for each in found)
    show_table(columns, rows)


def _what(found: FoundKem) -> Text:
    """Beginning of the unit, which others say the same, and which contradict it, the newer ones marked."""
    twins = ", ".join(twin.kem_id for twin in found.twins)
    shown = summary(found.kem) + Text(f" (= {twins})" if twins else "", style="dim")
    ids = ", ".join(f"{each.kem_id}{' (newer)' if each.is_newer else ''}" for each in found.contradicts)
    return shown + Text(f" (contradicts {ids})" if ids else "", style="yellow")


def show_kem(kem: Kem, *, as_json: bool, with_vector: bool = False) -> None:
    """All of a unit; its vector only where it is asked for."""
    if as_json:
        show_json(kem.model_dump(mode="json", exclude=set() if with_vector else {"embeddings"}))
        return
    rows = {
        "unit": kem.id,
        "owner": kem.owner,
        "visibility": ", ".join([kem.visibility, *kem.readers]),
        "writers": ", ".join(kem.writers),
        "type": kem.content_type,
        "metadata": " ".join(f"{key}={value}" for key, value in kem.metadata.items()),
        "from": _origin(kem),
        "holds": _validity(kem),
        "supersedes": ", ".join(kem.supersedes),
        "superseded by": kem.superseded_by or "",
        "vector": "none" if kem.embeddings is None else f"{kem.embeddings.dim} numbers of {kem.embeddings.model}",
        "created": kem.created_at.isoformat(timespec="seconds"),
        "updated": f"{kem.updated_at.isoformat(timespec='seconds')}, version {kem.version}",
    }
    show_table(("", ""), ((name, escape_controls(value)) for name, value in rows.items() if value))
    say_data(escape_controls(kem.content) if kem.content is not None else f"in {_artifact(kem)}")


def show_stats(found: MemoryStats) -> None:
    rows = {
        "units that you may read": found.kems,
        "your own": found.own,
        "with a vector": found.with_vector,
        **{f"of type {kind}": count for kind, count in found.by_content_type.items()},
        "newest": found.newest.isoformat(timespec="seconds") if found.newest else "none",
        "vectors are of": f"{found.model}, {found.dim} numbers",
    }
    show_table(("", ""), rows.items())


def summary(kem: Kem) -> Text:
    """The beginning of what it says, in one line."""
    words = " ".join((kem.content or f"in {_artifact(kem)}").split())
    facts = " ".join(f"{key}={value}" for key, value in kem.metadata.items())
    text = Text("" if holds_at(kem, datetime.now(UTC)) else "(does not hold now) ", style="yellow")
    text = text.append(
        escape_controls(words[:_SHOWN_CHARACTERS]) + ("…" if len(words) > _SHOWN_CHARACTERS else ""), style="default"
    )
    return text.append(f"  {escape_controls(facts[:_SHOWN_CHARACTERS])}", style="dim") if facts else text


def _score(found: FoundKem) -> str:
    return "" if found.score is None else f"{found.score:.3f}"


def _why(found: FoundKem) -> str:
    """Parts that add up to the score, and what their sum is multiplied by."""
    explain = found.explain
    if explain is None:
        return ""
    parts = {"base": explain.base, "words": explain.by_words, "meaning": explain.by_meaning}
    if explain.raised_by is not None:
        parts[f"in place of {explain.raised_by}"] = explain.raised
    said = " + ".join(f"{name} {value:.3f}" for name, value in parts.items() if value)
    if explain.validity != 1:
        said = f"({said}) × {explain.validity:g}, it does not hold"
    return f"{said}: {', '.join(explain.words)}" if explain.words else said


def _artifact(kem: Kem) -> str:
    return "" if kem.ref is None else f"{kem.ref.artifact_id} ({kem.ref.size_bytes} bytes)"


def _validity(kem: Kem) -> str:
    bounds = {"from": kem.valid_from, "until": kem.valid_to}
    return " ".join(f"{name} {local_time(time)}" for name, time in bounds.items() if time is not None)


def _origin(kem: Kem) -> str:
    source = kem.source
    if source is None:
        return ""
    span = "" if source.start is None else f" from character {source.start} to {source.end}"
    artifact = "" if source.artifact is None else f"{source.artifact.artifact_id}{span}"
    return " ".join([artifact, *(f"{link.kind} {link.id}" for link in source.links)]).strip()
