"""A page of manifests at a price that depends neither on how many there are nor on how many are hidden."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.identities import owner_of
from bus_schema.storage import SearchArtifacts
from storage_service.acl import Asker, readable_by
from storage_service.models import ManifestRow, TraceMemberRow
from storage_service.spans import positions_of
from storage_service.streams import Stream, of_others_in, of_others_in_any, of_owner, of_trace, of_value, public

# Streams in which together everything is that is wanted, each in one of them.
Way = tuple[Stream, ...]

_END = 2**62


@dataclass(frozen=True, slots=True)
class Pace:
    """How far to look at once, how much is still little."""

    stride: int = 1024
    longest_stride: int = 4096
    few_traces: int = 1000
    few_rows: int = 2000


PACE = Pace()


@dataclass(frozen=True)
class Search:
    """Looks for what one asker may read of what it wants.

    Several ways come past all of that: along what a filter selects, along what the asker may read. Which of them has
    the fewest others on it differs from place to place, so that each stretch is gone the way that leads farthest; where
    nothing was found, all ways are asked where there can be something next. The ways say only where to look: whether a
    manifest is readable, the ACL says of each.
    """

    session: AsyncSession
    wanted: SearchArtifacts
    asker: Asker
    pace: Pace = PACE

    async def places(self, after: int, count: int) -> list[int]:
        """Where the next ones are, in order of commit."""
        after, end = await self._made(after)
        ways = await self._ways(after)
        found: list[int] = []
        stride = self._first_stride
        while after < end and len(found) < count:
            way, until = await self._farthest(ways, after, stride)
            until = min(until, end)
            places = await self._along(way, after, until, count - len(found))
            found += places
            after = until
            if until < end and len(found) < count:
                after, end = await self._made(until if places else await self._skipped(ways, until))
            stride = self._first_stride if after > until else min(stride * 4, self.pace.longest_stride)
        return found

    async def _ways(self, after: int) -> list[Way]:
        me = self.asker.owner
        ways: list[Way] = [(of_value(column, value),) for column, value in self._equal.items()]
        trace = self.wanted.trace_id
        if trace is not None:
            shown = of_trace(trace, "public"), of_trace(trace, "trace")
            return [(*shown, of_owner(me, "private")), (*shown, of_trace(trace, "private")), *ways]
        return [(public(), of_owner(me, "private", "trace"), *await self._of_their_traces(after)), *ways]

    async def _of_their_traces(self, after: int) -> Way:
        me, here = self.asker.owner, self.asker.trace_id
        query = select(TraceMemberRow.trace_id).where(TraceMemberRow.member == me).limit(self.pace.few_traces + 1)
        traces = {*await self.session.scalars(query), *([] if here is None else [here])}
        if not traces:
            return ()
        if len(traces) > self.pace.few_traces:
            return (of_others_in_any(me, None, None),)
        theirs = of_others_in(sorted(traces), me)
        if (await self.session.scalar(theirs.size(after, self.pace.few_rows + 1)) or 0) <= self.pace.few_rows:
            return (theirs,)
        return (of_others_in_any(me, me, here),)

    async def _farthest(self, ways: list[Way], after: int, stride: int) -> tuple[Way, int]:
        """The way on which a stride leads farthest, with where to."""
        ends = await self._positions([[stream.reach(after, stride) for stream in way] for way in ways])
        reached = [min(_END if end is None else end for end in each) for each in ends]
        best = max(range(len(ways)), key=reached.__getitem__)
        return ways[best], reached[best]

    async def _skipped(self, ways: list[Way], after: int) -> int:
        """The last position before which there is nothing to be found."""
        nearest = await self._positions([[stream.next(after) for stream in way] for way in ways])
        return max(min(_END if each is None else each - 1 for each in way) for way in nearest)

    async def _made(self, after: int) -> tuple[int, int]:
        """The same, as far as the time is concerned in which it was made, with the last position of that time."""
        if not self._is_timed:
            return after, _END
        made_after, made_before = self.wanted.created_after, self.wanted.created_before
        found = await positions_of(self.session, after + 1, made_after, made_before)
        return (_END, _END) if found is None else (found[0] - 1, found[1])

    async def _along(self, way: Way, after: int, until: int, count: int) -> Sequence[int]:
        place = ManifestRow.position
        parts = [stream.places(after, until).where(*self._conditions).order_by(place).limit(count) for stream in way]
        found = union_all(*(select(part.subquery()) for part in parts)).subquery()
        return (await self.session.scalars(select(found).order_by(found.c.position).limit(count))).all()

    async def _positions(self, asked: list[list[ColumnElement[Any]]]) -> list[list[int | None]]:
        answers = iter((await self.session.execute(select(*(each for way in asked for each in way)))).one())
        return [[next(answers) for _ in way] for way in asked]

    @cached_property
    def _first_stride(self) -> int:
        """The more is asked for besides what one way leads along, the less of what lies along it is wanted."""
        others = max(0, len(self._equal) - 1) + self._is_timed
        return min(self.pace.stride << 2 * others, self.pace.longest_stride)

    @property
    def _is_timed(self) -> bool:
        return not (self.wanted.created_after is None and self.wanted.created_before is None)

    @cached_property
    def _equal(self) -> dict[Any, str]:
        wanted = {
            # Only an owner registers, so the owner is every instance that may have made it.
            ManifestRow.owner: None if self.wanted.agent is None else owner_of(self.wanted.agent),
            ManifestRow.step_id: self.wanted.step_id,
            ManifestRow.artifact_type: self.wanted.artifact_type,
        }
        return {column: value for column, value in wanted.items() if value is not None}

    @cached_property
    def _conditions(self) -> list[ColumnElement[bool]]:
        """What a manifest must meet, put so that no database looks for it along another index than the way's."""
        conditions = [readable_by(self.asker), *(column + "" == value for column, value in self._equal.items())]
        if self.wanted.trace_id is not None:
            conditions.append(ManifestRow.trace_id + "" == self.wanted.trace_id)
        if self.wanted.created_after is not None:
            conditions.append(ManifestRow.created_at >= self.wanted.created_after)
        if self.wanted.created_before is not None:
            conditions.append(ManifestRow.created_at < self.wanted.created_before)
        return conditions
