"""Manifests in order of commit, each stream of them along one index."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal_column, null, select, union_all

from storage_service.models import ManifestRow, TraceMemberRow

_UNEXPIRED = ManifestRow.expired_at.is_(None)


@dataclass(frozen=True)
class Stream:
    """Those with one value in each of the columns that an index has before the position.

    To read on costs the same wherever in it one is. What another stream of the same way has, `besides` leaves out.
    """

    where: tuple[ColumnElement[bool], ...]
    besides: tuple[ColumnElement[bool], ...] = ()

    def reach(self, after: int, count: int) -> ColumnElement[Any]:
        """The position of the one that is so many further on; null where there are not so many."""
        return self._beyond(after).order_by(ManifestRow.position).limit(1).offset(count - 1).scalar_subquery()

    def next(self, after: int) -> ColumnElement[Any]:
        """A position before which none of them can be of use; null where none can any more."""
        return self.reach(after, 1)

    def size(self, after: int, at_most: int) -> Select[int]:
        """How many there are, counted only so far."""
        return select(func.count()).select_from(self._beyond(after).limit(at_most).subquery())

    def places(self, after: int, until: int) -> Select[int]:
        """Those between two positions, `until` being one of them."""
        between = ManifestRow.position.between(after + 1, until)
        return select(ManifestRow.position).where(*self.where, *self.besides, _UNEXPIRED, between)

    def _beyond(self, after: int) -> Select[int]:
        return select(ManifestRow.position).where(*self.where, _UNEXPIRED, ManifestRow.position > after)


@dataclass(frozen=True)
class OfTraces(Stream):
    """What some traces may read, all of it in one stretch: for when that is little."""

    def reach(self, after: int, count: int) -> ColumnElement[Any]:
        """As in Stream."""
        return null()


@dataclass(frozen=True)
class OfAllTraces(Stream):
    """What any trace may read: where somebody takes part in many of them, no small part of it is of use."""

    member: str | None = None
    here: str | None = None

    def next(self, after: int) -> ColumnElement[Any]:
        """As in Stream; for a member of not too many, the nearest of what each of its own has next."""
        if self.member is None:
            return super().next(after)
        of_theirs = Stream((ManifestRow.trace_id == TraceMemberRow.trace_id, ManifestRow.visibility == "trace"))
        nearest = func.min(of_theirs.next(after).correlate(TraceMemberRow))
        found = select(nearest.label("position")).where(TraceMemberRow.member == self.member)
        if self.here is None:
            return found.scalar_subquery()
        either = union_all(found, select(of_trace(self.here, "trace").next(after))).subquery()
        return select(func.min(either.c.position)).scalar_subquery()


def public() -> Stream:
    """What everybody may read."""
    return Stream((_literally("public"),))


def of_owner(owner: str, *visibilities: str) -> Stream:
    """What somebody owns, as far as it is shown so."""
    return Stream((ManifestRow.owner == owner,), (ManifestRow.visibility.in_(visibilities),))


def of_value(column: Any, value: str) -> Stream:
    """Those that have this value."""
    return Stream((column == value,))


def of_trace(trace_id: str, visibility: str) -> Stream:
    """What one trace has of one visibility."""
    return Stream((ManifestRow.trace_id == trace_id, ManifestRow.visibility == visibility))


def of_others_in(trace_ids: Sequence[str], owner: str) -> OfTraces:
    """What these traces may read, but for what somebody owns."""
    where = (ManifestRow.trace_id.in_(trace_ids), ManifestRow.visibility == "trace")
    return OfTraces(where, (ManifestRow.owner != owner,))


def of_others_in_any(owner: str, member: str | None, here: str | None) -> OfAllTraces:
    """What any trace may read, but for what somebody owns."""
    return OfAllTraces((_literally("trace"),), (ManifestRow.owner != owner,), member, here)


def _literally(visibility: str) -> ColumnElement[bool]:
    # SQLite takes an index of some rows only where the query names them as the index does.
    return ManifestRow.visibility == literal_column(f"'{visibility}'")
