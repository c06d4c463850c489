"""Where a unit came from, with where that is shown."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from bus_schema.identities import is_user_id
from bus_schema.kem import Kem, KemSource
from bus_schema.links import Link


@dataclass(frozen=True)
class Step:
    """One thing that a unit was made from; `span` are characters of it."""

    kind: str
    id: str
    target: str = ""
    span: tuple[int, int] | None = None


def steps_of(kem: Kem) -> list[Step]:
    """From the first on; the unit itself is not among them."""
    source = kem.source or KemSource()
    found = [_linked(link, kem) for link in source.links]
    if source.artifact is not None:
        span = None if source.start is None or source.end is None else (source.start, source.end)
        found.append(Step("artifact", source.artifact.artifact_id, _artifact(source.artifact.artifact_id, kem), span))
    return found


def content_target(kem: Kem) -> str:
    """Where content is shown that is an artifact."""
    return "" if kem.ref is None else _artifact(kem.ref.artifact_id, kem)


def _linked(link: Link, kem: Kem) -> Step:
    user, trace = _text(kem, "user_id"), _text(kem, "trace_id")
    target = ""
    if link.kind == "artifact":
        target = _artifact(link.id, kem)
    elif is_user_id(user):
        # Whatever is found in a talk is shown beside it.
        message = {"message": link.id} if link.kind == "message" else {}
        target = f"/chat?{urlencode({'with': user} | message)}"
    elif trace:
        target = f"/timeline?{urlencode({'trace': trace})}"
    return Step(link.kind, link.id, target)


def _artifact(artifact_id: str, kem: Kem) -> str:
    trace = _text(kem, "trace_id")
    return f"/artifacts/{quote(artifact_id)}" + (f"?{urlencode({'trace': trace})}" if trace else "")


def _text(kem: Kem, key: str) -> str:
    value = kem.metadata.get(key)
    return value if isinstance(value, str) else ""
