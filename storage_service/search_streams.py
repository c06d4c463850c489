"""Streams of manifests in order of commit, each along one index."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Select,
    bindparam,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
)

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
    """What some traces may read, read at once: for few rows."""

    def reach(self) -> ColumnElement[Any]:
        return null()


@dataclass(frozen=True)
class OfAllTraces(Stream):
    """What any trace may read: for a member of many traces."""

    is_of_member: bool = False
    is_here: bool = False

    def next(self) -> ColumnElement[Any]:
        """The nearest position of any stream, or of the member's own traces where these are not too many."""
        if not self.is_of_member:
            return super().next()
        of_theirs = Stream((ManifestRow.trace_id == TraceMemberRow.trace_id, ManifestRow.visibility == "trace"))
        nearest = func.min(of_theirs.next().correlate(TraceMemberRow))
        found = select(nearest.label("position")).where(TraceMemberRow.member == ME)
        if not self.is_here:
            return found.scalar_subquery()
        either = union_all(found, select(of_trace(HERE, "trace").next())).subquery()
        return select(func.min(either.c.position)).scalar_subquery()


def public() -> Stream:
    """Public manifests."""
    return Stream((_literally("public"),))


def of_owner(*visibilities: str) -> Stream:
    """The requester's manifests of some visibilities."""
    return Stream((ManifestRow.owner == ME,), (or_(*(ManifestRow.visibility == each for each in visibilities)),))


def of_value(column: Any, value: BindParameter[str]) -> Stream:
    """Manifests with a value in a column."""
    return Stream((column == value,))


def of_trace(trace: BindParameter[str], visibility: str) -> Stream:
    """Manifests of one trace and visibility."""
    return Stream((ManifestRow.trace_id == trace, ManifestRow.visibility == visibility))


def of_others_in_each() -> OfTraces:
    """What some traces may read, without the requester's own."""
    traces = bindparam("traces", expanding=True, type_=ManifestRow.trace_id.type)
    where = (ManifestRow.trace_id.in_(traces), ManifestRow.visibility == "trace")
    return OfTraces(where, (ManifestRow.owner != ME,))


def of_others_in_any(*, is_of_member: bool, is_here: bool) -> OfAllTraces:
    """What any trace may read, without the requester's own."""
    return OfAllTraces((_literally("trace"),), (ManifestRow.owner != ME,), is_of_member, is_here)


def _literally(visibility: str) -> ColumnElement[bool]:
    # SQLite uses a partial index only where the query repeats its condition literally.
    return ManifestRow.visibility == literal_column(f"'{visibility}'")
