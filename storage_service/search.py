"""Search of manifests; the cost of a page depends neither on their number nor on how many are hidden."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Row, Select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.identities import Principal
from bus_schema.storage import SearchArtifacts
from storage_service.rows import positions_of
from storage_service.search_statements import SIZE, TRACES, Queries, Shape, TraceReach, queries_of, shape_of, values_of

_END = 2**62


@dataclass(frozen=True, slots=True)
class SearchTuning:
    """Positions per step, and the thresholds below which traces and rows count as few."""

    stride: int = 1024
    longest_stride: int = 4096
    few_traces: int = 1000
    few_rows: int = 2000


DEFAULT_TUNING = SearchTuning()


@dataclass(frozen=True)
class ManifestSearch:
    """One search in the name of one requester.

    Several paths contain every result: the index of each filter, the indexes of what the requester may read. The most
    selective path differs from place to place, so each step goes along the path whose stride reaches farthest; where
    nothing was found, all paths are asked where the next result can be. Paths only narrow the search: every manifest is
    checked against the ACL.
    """

    session: AsyncSession
    request: SearchArtifacts
    principal: Principal
    pace: SearchTuning = DEFAULT_TUNING

    async def places(self, after: int, count: int) -> list[int]:
        """Positions of the next results, in order of commit."""
        after, end = await self._creation_bounds(after)
        queries = queries_of(self._shape, await self._trace_reach(after))
        positions: list[int] = []
        stride = self._first_stride
        while after < end and len(positions) < count:
            way, until = await self._farthest_path(queries, after, stride)
            until = min(until, end)
            places = await self._all(queries.along[way], after=after, until=until, most=count - len(positions))
            positions += places
            after = until
            if until < end and len(positions) < count:
                after, end = await self._creation_bounds(until if places else await self._skip(queries, until))
            stride = self._first_stride if after > until else min(stride * 4, self.pace.longest_stride)
        return positions

    async def manifests(self, page: Sequence[int]) -> Sequence[Row[Any]]:
        """Manifests at some positions that may be read."""
        query = queries_of(self._shape, "nothing").manifests
        rows: Sequence[Row[Any]] = (await self.session.execute(query, self._values | {"page": page})).all()
        return rows

    async def _trace_reach(self, after: int) -> TraceReach:
        if self._shape.is_of_trace:
            return "nothing"
        own_trace = self.principal.trace_id
        listed = await self._all(TRACES, most=self.pace.few_traces + 1)
        traces = {*listed, *([] if own_trace is None else [own_trace])}
        if not traces:
            return "nothing"
        if len(traces) > self.pace.few_traces:
            return "many traces"
        self._values["traces"] = sorted(traces)
        (size,) = await self._all(SIZE, after=after, most=self.pace.few_rows + 1)
        return "little" if size <= self.pace.few_rows else "much"

    async def _farthest_path(self, queries: Queries, after: int, stride: int) -> tuple[int, int]:
        """Index of the path on which a stride reaches farthest, and the position it reaches."""
        ends = await self._positions(queries, queries.reach, after=after, skipped=stride - 1)
        reached = [min(_END if end is None else end for end in path_ends) for path_ends in ends]
        best = max(range(len(reached)), key=reached.__getitem__)
        return best, reached[best]

    async def _skip(self, queries: Queries, after: int) -> int:
        """The last position before which there can be no result."""
        nearest = await self._positions(queries, queries.nearest, after=after)
        return max(min(_END if position is None else position - 1 for position in way) for way in nearest)

    async def _creation_bounds(self, after: int) -> tuple[int, int]:
        """The position before the first possible result by time of creation, and the last such position."""
        if not self._shape.is_timed:
            return after, _END
        made_after, made_before = self.request.created_after, self.request.created_before
        positions = await positions_of(self.session, after + 1, made_after, made_before)
        return (_END, _END) if positions is None else (positions[0] - 1, positions[1])

    async def _positions(self, queries: Queries, query: Select[Any], **values: int) -> list[list[int | None]]:
        return queries.by_path((await self.session.execute(query, self._values | values)).one())

    async def _all(self, query: Select[Any], **values: int) -> Sequence[Any]:
        return (await self.session.scalars(query, self._values | values)).all()

    @cached_property
    def _first_stride(self) -> int:
        """The stride grows with the number of filters besides the path's own: fewer rows along it are results."""
        other_conditions = max(0, len(self._shape.equal) - 1) + self._shape.is_timed
        return min(self.pace.stride << 2 * other_conditions, self.pace.longest_stride)

    @cached_property
    def _shape(self) -> Shape:
        return shape_of(self.request, self.principal)

    @cached_property
    def _values(self) -> dict[str, Any]:
        return values_of(self.request, self.principal)
