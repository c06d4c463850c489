"""Manifests in order of commit, each stream of them along one index."""

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

# The values come with each execution.
AFTER, UNTIL = bindparam("after", type_=BigInteger), bindparam("until", type_=BigInteger)
SKIPPED, MOST = bindparam("skipped", type_=BigInteger), bindparam("most", type_=BigInteger)
ME, HERE = bindparam("me", type_=ManifestRow.owner.type), bindparam("here", type_=ManifestRow.trace_id.type)
_UNEXPIRED = ManifestRow.expired_at.is_(None)


@dataclass(frozen=True)
class Stream:
    """Those with one value in each of the columns that an index has before the position.

    To read on costs the same wherever in it one is. What another stream of the same way has, `besides` leaves out.
    """

    where: tuple[ColumnElement[bool], ...]
    besides: tuple[ColumnElement[bool], ...] = ()

    def reach(self) -> ColumnElement[Any]:
        """The position of the one after so many that are skipped; null where there are not so many."""
        return self._beyond().order_by(ManifestRow.position).limit(1).offset(SKIPPED).scalar_subquery()

    def next(self) -> ColumnElement[Any]:
        """A position before which none of them can be of use; null where none can any more."""
        return self._beyond().order_by(ManifestRow.position).limit(1).scalar_subquery()

    def size(self) -> Select[int]:
        """How many there are, counted only so far."""
        return select(func.count()).select_from(self._beyond().limit(MOST).subquery())

    def places(self) -> Select[int]:
        """Those between two positions, the latter being one of them."""
        return self._beyond().where(*self.besides, ManifestRow.position <= UNTIL)

    def _beyond(self) -> Select[int]:
        return select(ManifestRow.position).where(*self.where, _UNEXPIRED, ManifestRow.position > AFTER)


@dataclass(frozen=True)
class OfTraces(Stream):
    """What some traces may read, all of it in one stretch: for when that is little."""

    def reach(self) -> ColumnElement[Any]:
        """As in Stream."""
        return null()


@dataclass(frozen=True)
class OfAllTraces(Stream):
    """What any trace may read: where somebody takes part in many of them, no small part of it is of use."""

    is_of_member: bool = False
    is_here: bool = False

    def next(self) -> ColumnElement[Any]:
        """As in Stream; for a member of not too many, the nearest of what each of its own has next."""
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
    """What everybody may read."""
    return Stream((_literally("public"),))


def of_owner(*visibilities: str) -> Stream:
    """What the asker owns, as far as it is shown so."""
    return Stream((ManifestRow.owner == ME,), (or_(*(ManifestRow.visibility == each for each in visibilities)),))


def of_value(column: Any, value: BindParameter[str]) -> Stream:
    """Those that have this value."""
    return Stream((column == value,))


def of_trace(trace: BindParameter[str], visibility: str) -> Stream:
    """What one trace has of one visibility."""
    return Stream((ManifestRow.trace_id == trace, ManifestRow.visibility == visibility))


def of_others_in_each() -> OfTraces:
    """What some traces may read, but for what the asker owns."""
    traces = bindparam("traces", expanding=True, type_=ManifestRow.trace_id.type)
    where = (ManifestRow.trace_id.in_(traces), ManifestRow.visibility == "trace")
    return OfTraces(where, (ManifestRow.owner != ME,))


def of_others_in_any(*, is_of_member: bool, is_here: bool) -> OfAllTraces:
    """What any trace may read, but for what the asker owns."""
    return OfAllTraces((_literally("trace"),), (ManifestRow.owner != ME,), is_of_member, is_here)


def _literally(visibility: str) -> ColumnElement[bool]:
    # SQLite takes an index of some rows only where the query names them as the index does.
    return ManifestRow.visibility == literal_column(f"'{visibility}'")
