"""What a search asks the database, put together once for all searches of one shape.

The values come with each execution: `values_of` names them. To put a statement together takes longer than to run it.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, Select, bindparam, select, union_all

from bus_schema.identities import owner_of
from bus_schema.storage import SearchArtifacts
from mindbus.principal import Principal
from storage_service.acl import readable_as
from storage_service.search_streams import (
    HERE,
    ME,
    MOST,
    Stream,
    of_others_in_any,
    of_others_in_each,
    of_owner,
    of_trace,
    of_value,
    public,
)
from storage_service.tables import ManifestRow, TraceMemberRow

# Streams in which together everything is that is wanted, each in one of them.
Path = tuple[Stream, ...]
# How many traces, or how much in them, the asker may read for taking part: it decides how to look through them.
TraceReach = Literal["nothing", "little", "much", "many traces"]

_COLUMNS: dict[str, Any] = {
    # Only an owner registers, so the owner is every instance that may have made it.
    "agent": ManifestRow.owner,
    "step_id": ManifestRow.step_id,
    "artifact_type": ManifestRow.artifact_type,
}
_BOUND = {name: bindparam(name, type_=column.type) for name, column in _COLUMNS.items()}
_TRACE = bindparam("trace", type_=ManifestRow.trace_id.type)
_MADE_AFTER, _MADE_BEFORE = (
    bindparam(name, type_=ManifestRow.created_at.type) for name in ("made_after", "made_before")
)

TRACES = select(TraceMemberRow.trace_id).where(TraceMemberRow.member == ME).limit(MOST)
SIZE = of_others_in_each().size()
_PAGE = ManifestRow.position.in_(bindparam("page", expanding=True))


@dataclass(frozen=True)
class Shape:
    """What is asked for, but for the values."""

    equal: tuple[str, ...]
    is_of_trace: bool
    is_here: bool
    is_made_after: bool
    is_made_before: bool

    @property
    def is_timed(self) -> bool:
        """Whether it matters when something was made."""
        return self.is_made_after or self.is_made_before


def shape_of(wanted: SearchArtifacts, principal: Principal) -> Shape:
    """The shape of one search."""
    return Shape(
        equal=tuple(name for name in _COLUMNS if getattr(wanted, name) is not None),
        is_of_trace=wanted.trace_id is not None,
        is_here=principal.trace_id is not None,
        is_made_after=wanted.created_after is not None,
        is_made_before=wanted.created_before is not None,
    )


def values_of(wanted: SearchArtifacts, principal: Principal) -> dict[str, Any]:
    """The values of one search, by the names that its statements have for them."""
    return {
        "me": principal.owner,
        "here": principal.trace_id,
        "trace": wanted.trace_id,
        "agent": None if wanted.agent is None else owner_of(wanted.agent),
        "step_id": wanted.step_id,
        "artifact_type": wanted.artifact_type,
        "made_after": wanted.created_after,
        "made_before": wanted.created_before,
    }


@dataclass(frozen=True)
class Queries:
    """The statements of all searches of one shape."""

    shape: Shape
    theirs: TraceReach

    @cached_property
    def ways(self) -> list[Path]:
        """All of them; each leads past everything that is wanted."""
        equal: list[Path] = [(of_value(_COLUMNS[name], _BOUND[name]),) for name in self.shape.equal]
        if self.shape.is_of_trace:
            shown = of_trace(_TRACE, "public"), of_trace(_TRACE, "trace")
            return [(*shown, of_owner("private")), (*shown, of_trace(_TRACE, "private")), *equal]
        return [(public(), of_owner("private", "trace"), *self._of_their_traces), *equal]

    @cached_property
    def reach(self) -> Select[Any]:
        """For each stream of each way the position of the one that is so many further on."""
        return select(*(stream.reach() for way in self.ways for stream in way))

    @cached_property
    def nearest(self) -> Select[Any]:
        """For each stream of each way a position before which it has nothing."""
        return select(*(stream.next() for way in self.ways for stream in way))

    @cached_property
    def manifests(self) -> Select[Any]:
        """Those of a page of places; the ACL has the last word."""
        found = select(ManifestRow.__table__).where(_PAGE, self._readable)
        return found.order_by(ManifestRow.position)

    @cached_property
    def along(self) -> list[Select[int]]:
        """For each way the places of what is wanted between two positions, the first ones of them."""
        return [self._along(way) for way in self.ways]

    def by_way(self, positions: Row[Any]) -> list[list[int | None]]:
        """What `reach` or `nearest` has answered."""
        answers = iter(positions)
        return [[next(answers) for _ in way] for way in self.ways]

    @property
    def _of_their_traces(self) -> Path:
        match self.theirs:
            case "nothing":
                return ()
            case "little":
                return (of_others_in_each(),)
            case "much":
                return (of_others_in_any(is_of_member=True, is_here=self.shape.is_here),)
            case "many traces":
                return (of_others_in_any(is_of_member=False, is_here=False),)

    def _along(self, way: Path) -> Select[int]:
        place = ManifestRow.position
        parts = [stream.places().where(*self._conditions).order_by(place).limit(MOST) for stream in way]
        found = union_all(*(select(part.subquery()) for part in parts)).subquery()
        return select(found.c.position).order_by(found.c.position).limit(MOST)

    @cached_property
    def _readable(self) -> ColumnElement[bool]:
        return readable_as(ME, HERE if self.shape.is_here else None)

    @cached_property
    def _conditions(self) -> list[ColumnElement[bool]]:
        """What a manifest must meet, put so that no database looks for it along another index than the way's."""
        conditions = [self._readable]
        conditions += [_COLUMNS[name] + "" == _BOUND[name] for name in self.shape.equal]
        if self.shape.is_of_trace:
            conditions.append(ManifestRow.trace_id + "" == _TRACE)
        if self.shape.is_made_after:
            conditions.append(ManifestRow.created_at >= _MADE_AFTER)
        if self.shape.is_made_before:
            conditions.append(ManifestRow.created_at < _MADE_BEFORE)
        return conditions


@cache
def queries_of(shape: Shape, theirs: TraceReach) -> Queries:
    """There are some hundred shapes."""
    return Queries(shape, theirs)
