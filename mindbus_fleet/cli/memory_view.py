"""Units of shared memory as text, tables and JSON."""

from collections.abc import Iterable
from typing import Any

from rich.text import Text

from bus_schema.glm import FoundKem, MemoryStats
from bus_schema.kem import Kem
from mindbus.cli.console import say, show_json, show_table
from mindbus.terminal import escape_controls

_SHOWN_CHARACTERS = 160


def found_json(found: FoundKem) -> dict[str, Any]:
    """What a search prints of each unit."""
    kem = found.kem.model_dump(mode="json", include={"content", "metadata", "source"})
    explained = {} if found.explain is None else {"explain": found.explain.model_dump(mode="json")}
    return {"kem_id": found.kem.id, "score": found.score, **kem, **explained}


def show_found(found: Iterable[FoundKem], *, is_explained: bool) -> None:
    """As a table, the nearest first."""
    columns = ("score", "unit", "what", *(("why",) if is_explained else ()))
    show_table(columns, ((_score(each), each.kem.id, summary(each.kem), _why(each))[: len(columns)] for each in found))


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
        "vector": "none" if kem.embeddings is None else f"{kem.embeddings.dim} numbers of {kem.embeddings.model}",
        "created": kem.created_at.isoformat(timespec="seconds"),
        "updated": f"{kem.updated_at.isoformat(timespec='seconds')}, version {kem.version}",
    }
    show_table(("", ""), ((name, escape_controls(value)) for name, value in rows.items() if value))
    say(escape_controls(kem.content) if kem.content is not None else f"in {_artifact(kem)}")


def show_stats(found: MemoryStats) -> None:
    """How much there is that the asker may read."""
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
    text = Text(escape_controls(words[:_SHOWN_CHARACTERS]) + ("…" if len(words) > _SHOWN_CHARACTERS else ""))
    return text.append(f"  {escape_controls(facts[:_SHOWN_CHARACTERS])}", style="dim") if facts else text


def _score(found: FoundKem) -> str:
    return "" if found.score is None else f"{found.score:.3f}"


def _why(found: FoundKem) -> str:
    if found.explain is None:
        return ""
    parts = {"meaning": found.explain.dense, "words": found.explain.lexical}
    said = [f"{name} {value:.3f}" for name, value in parts.items() if value is not None]
    return " ".join([*said, *found.explain.words])


def _artifact(kem: Kem) -> str:
    return "" if kem.ref is None else f"{kem.ref.artifact_id} ({kem.ref.size_bytes} bytes)"


def _origin(kem: Kem) -> str:
    source = kem.source
    if source is None:
        return ""
    span = "" if source.start is None else f" from character {source.start} to {source.end}"
    artifact = "" if source.artifact is None else f"{source.artifact.artifact_id}{span}"
    return " ".join([artifact, *(f"{link.kind} {link.id}" for link in source.links)]).strip()
