"""SQL statements of a search, built once for all searches of one shape.

The values come with each execution, named by `values_of`: building a statement takes longer than running it.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Row,
    Select,
    bindparam,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
)

from bus_schema.identities import Principal, owner_of
from bus_schema.model_calls import MODEL_CALL
from bus_schema.storage import SearchArtifacts
from storage_service.acl import readable_as
from storage_service.tables import ManifestRow, TraceMemberRow

# Parameters of the statements.
AFTER, UNTIL = bindparam("after", type_=BigInteger), bindparam("until", type_=BigInteger)
SKIPPED, MOST = bindparam("skipped", type_=BigInteger), bindparam("most", type_=BigInteger)
ME, HERE = bindparam("me", type_=ManifestRow.owner.type), bindparam("here", type_=ManifestRow.trace_id.type)
_UNEXPIRED = ManifestRow.expired_at.is_(None)


@dataclass(frozen=True)
class Stream:
    """Manifests with one value in each column that an index has before the position.

    Reading on costs the same at any position. `besides` leaves out what another stream of the same path has.
    """

    where: tuple[ColumnElement[bool], ...]
    besides: tuple[ColumnElement[bool], ...] = ()

    def reach(self) -> ColumnElement[Any]:
        """The position after SKIPPED manifests; null where there are fewer."""
        return self._beyond().order_by(ManifestRow.position).limit(1).offset(SKIPPED).scalar_subquery()

    def next(self) -> ColumnElement[Any]:
        """A position before which there is no result; null where there is none any more."""
        return self._beyond().order_by(ManifestRow.position).limit(1).scalar_subquery()

    def size(self) -> Select[int]:
        """Number of manifests, counted up to MOST."""
        return select(func.count()).select_from(self._beyond().limit(MOST).subquery())

    def places(self) -> Select[int]:
        """Positions after AFTER up to UNTIL."""
        return self._beyond().where(*self.besides, ManifestRow.position <= UNTIL)

    def _beyond(self) -> Select[int]:
        return select(ManifestRow.position).where(*self.where, _UNEXPIRED, ManifestRow.position > AFTER)


@dataclass(frozen=True)
class OfTraces(Stream):
    """Manifests readable within some traces, in one query: for few rows."""

    def reach(self) -> ColumnElement[Any]:
        return null()


@dataclass(frozen=True)
class OfAllTraces(Stream):
    """Manifests readable within any trace: for a member of many traces."""

    is_of_member: bool = False
    is_here: bool = False

    def next(self) -> ColumnElement[Any]:
        """The nearest position of any stream, or of the member's own traces where these are not too many."""
        if not self.is_of_member:
            return super().next()
        of_theirs = Stream((ManifestRow.trace_id == TraceMemberRow.trace_id, ManifestRow.visibility == "trace"))
        nearest = func.min(of_theirs.next().correlate(TraceMemberRow))
        positions = select(nearest.label("position")).where(TraceMemberRow.member == ME)
        if not self.is_here:
            return positions.scalar_subquery()
        either = union_all(positions, select(of_trace(HERE, "trace").next())).subquery()
        return select(func.min(either.c.position)).scalar_subquery()


def of_owner(*visibilities: str) -> Stream:
    """The requester's manifests of some visibilities."""
    return Stream((ManifestRow.owner == ME,), (or_(*(ManifestRow.visibility == name for name in visibilities)),))


def of_trace(trace: BindParameter[str], visibility: str) -> Stream:
    return Stream((ManifestRow.trace_id == trace, ManifestRow.visibility == visibility))


def of_others_in_each() -> OfTraces:
    """Manifests readable within some traces, without the requester's own."""
    traces = bindparam("traces", expanding=True, type_=ManifestRow.trace_id.type)
    where = (ManifestRow.trace_id.in_(traces), ManifestRow.visibility == "trace")
    return OfTraces(where, (ManifestRow.owner != ME,))


def of_others_in_any(*, is_of_member: bool, is_here: bool) -> OfAllTraces:
    """Manifests readable within any trace, without the requester's own."""
    return OfAllTraces((_literally("trace"),), (ManifestRow.owner != ME,), is_of_member, is_here)


def _literally(visibility: str) -> ColumnElement[bool]:
    # SQLite uses a partial index only where the query repeats its condition literally.
    return ManifestRow.visibility == literal_column(f"'{visibility}'")


# Streams that together contain every result, each result once.
Path = tuple[Stream, ...]
# Extent of the manifests readable as a member of traces; it decides how these are read.
TraceReach = Literal["nothing", "little", "much", "many traces"]

_COLUMNS: dict[str, Any] = {
    # Only an owner registers, so the owner stands for all its instances.
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
    """The filters of a search without their values."""

    equal: tuple[str, ...]
    is_of_trace: bool
    is_here: bool
    is_made_after: bool
    is_made_before: bool

    @property
    def is_timed(self) -> bool:
        return self.is_made_after or self.is_made_before


def shape_of(request: SearchArtifacts, principal: Principal) -> Shape:
    return Shape(
        equal=tuple(name for name in _COLUMNS if getattr(request, name) is not None),
        is_of_trace=request.trace_id is not None,
        is_here=principal.trace_id is not None,
        is_made_after=request.created_after is not None,
        is_made_before=request.created_before is not None,
    )


def values_of(request: SearchArtifacts, principal: Principal) -> dict[str, Any]:
    return {
        "me": principal.owner,
        "here": principal.trace_id,
        "trace": request.trace_id,
        "agent": None if request.agent is None else owner_of(request.agent),
        "step_id": request.step_id,
        "artifact_type": request.artifact_type,
        "made_after": request.created_after,
        "made_before": request.created_before,
    }


@dataclass(frozen=True)
class Queries:
    """Statements of all searches of one shape."""

    shape: Shape
    theirs: TraceReach

    @cached_property
    def paths(self) -> list[Path]:
        equal: list[Path] = [(Stream((_COLUMNS[name] == _BOUND[name],)),) for name in self.shape.equal]
        if self.shape.is_of_trace:
            shown = of_trace(_TRACE, "public"), of_trace(_TRACE, "trace")
            return [(*shown, of_owner("private")), (*shown, of_trace(_TRACE, "private")), *equal]
        return [(Stream((_literally("public"),)), of_owner("private", "trace"), *self._of_their_traces), *equal]

    @cached_property
    def reach(self) -> Select[Any]:
        """For each stream of each path the position that a stride reaches."""
        return select(*(stream.reach() for path in self.paths for stream in path))

    @cached_property
    def nearest(self) -> Select[Any]:
        """For each stream of each path a position before which it has nothing."""
        return select(*(stream.next() for path in self.paths for stream in path))

    @cached_property
    def manifests(self) -> Select[Any]:
        """The manifests of a page of positions, under the condition of the ACL."""
        query = select(ManifestRow.__table__).where(_PAGE, self._readable)
        return query.order_by(ManifestRow.position)

    @cached_property
    def along(self) -> list[Select[int]]:
        """For each path the positions of the first results between two positions."""
        return [self._along(path) for path in self.paths]

    def by_path(self, positions: Row[Any]) -> list[list[int | None]]:
        """The row of `reach` or `nearest`, split by path."""
        answers = iter(positions)
        return [[next(answers) for _ in path] for path in self.paths]

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

    def _along(self, path: Path) -> Select[int]:
        place = ManifestRow.position
        parts = [stream.places().where(*self._conditions).order_by(place).limit(MOST) for stream in path]
        union = union_all(*(select(part.subquery()) for part in parts)).subquery()
        return select(union.c.position).order_by(union.c.position).limit(MOST)

    @cached_property
    def _readable(self) -> ColumnElement[bool]:
        return readable_as(ME, HERE if self.shape.is_here else None)

    @cached_property
    def _conditions(self) -> list[ColumnElement[bool]]:
        """Conditions on a manifest, written so that no database uses another index than the path's."""
        conditions = [self._readable]
        conditions += [_COLUMNS[name] + "" == _BOUND[name] for name in self.shape.equal]
        if "artifact_type" not in self.shape.equal:
            conditions.append(ManifestRow.artifact_type + "" != MODEL_CALL)
        if self.shape.is_of_trace:
            conditions.append(ManifestRow.trace_id + "" == _TRACE)
        if self.shape.is_made_after:
            conditions.append(ManifestRow.created_at >= _MADE_AFTER)
        if self.shape.is_made_before:
            conditions.append(ManifestRow.created_at < _MADE_BEFORE)
        return conditions


@cache
def queries_of(shape: Shape, reach: TraceReach) -> Queries:
    """Statements by shape, cached: there are some hundred shapes."""
    return Queries(shape, reach)
