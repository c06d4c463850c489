"""The embedded index in memory: vectors, times, rights and facets by row."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bus_schema.kem_match import Facet, facets
from bus_schema.kem_query import KemQuery
from memory.vectors.facet_index import FacetIndex
from memory.vectors.index import PREFIX, NearKem, VectorPoint, epoch_seconds
from mindbus.principal import Principal
from retrieval.vectors import Mask, VectorMatrix

# No metadata key has a colon.
_READER = ":reader"


class VectorCache:
    """Exact search over all points under filters and rights. Not thread-safe."""

    def __init__(self, dim: int) -> None:
        self._matrix = VectorMatrix(dim)
        rows = self._matrix.capacity
        self._times: NDArray[np.int64] = np.zeros((rows, 2), dtype=np.int64)
        self._is_taken: Mask = np.zeros(rows, dtype=np.bool_)
        # Columns rather than facets: a set of nearly all rows would be slow.
        self._is_public: Mask = np.zeros(rows, dtype=np.bool_)
        self._owner: NDArray[np.int32] = np.zeros(rows, dtype=np.int32)
        self._owners: dict[str, int] = {}
        self._points: dict[int, VectorPoint] = {}
        self._facets = FacetIndex()

    def versions(self) -> dict[str, int]:
        """Version of each unit."""
        return {point.kem_id: point.version for point in self._points.values()}

    def put(self, point: VectorPoint) -> None:
        """Add or replace a point."""
        self.drop(point.kem_id)
        row = self._matrix.put(point.kem_id, point.vector)
        if row >= len(self._times):
            self._grow()
        self._times[row] = point.payload["created_at_ts"], point.payload["updated_at_ts"]
        self._is_taken[row] = True
        self._is_public[row] = point.payload["visibility"] == "public"
        self._owner[row] = self._owners.setdefault(point.payload["owner"], len(self._owners))
        # The vector is in the matrix already.
        self._points[row] = VectorPoint(point.kem_id, point.version, b"", point.payload)
        self._facets.add(row, _facets_of(point))

    def drop(self, kem_id: str) -> None:
        """Remove a point if it is there."""
        row = self._matrix.drop(kem_id)
        if row is not None:
            self._facets.remove(row, _facets_of(self._points.pop(row)))
            self._is_taken[row] = False

    def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        """As `VectorIndex.nearest`."""
        mask = self._readable(principal) & self._matching(query)
        nearest = [NearKem(self._points[row].kem_id, score) for row, score in self._matrix.nearest(vector, mask, limit)]
        return sorted(nearest, key=lambda each: (-each.score, each.kem_id))

    def _readable(self, principal: Principal) -> Mask:
        size = self._matrix.size
        taken: Mask = self._is_taken[:size]
        if principal.is_trusted:
            return taken.copy()
        own = self._owner[:size] == self._owners.get(principal.owner, -1)
        shared: Mask = self._is_public[:size] | own | self._facets.having(_READER, principal.owner, size)
        return taken & shared

    def _matching(self, query: KemQuery) -> Mask:
        size = self._matrix.size
        mask = self._facets.matching(query.metadata_filters, size)
        if query.ids:
            rows = [row for kem_id in query.ids if (row := self._matrix.row_of(kem_id)) is not None]
            mask &= np.isin(np.arange(size), rows)
        starts, ends = (query.created_at_start, query.updated_at_start), (query.created_at_end, query.updated_at_end)
        for column, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start is not None:
                mask &= self._times[:size, column] >= epoch_seconds(start)
            if end is not None:
                mask &= self._times[:size, column] <= epoch_seconds(end)
        return mask

    def _grow(self) -> None:
        more = self._matrix.capacity - len(self._times)
        self._times = np.pad(self._times, ((0, more), (0, 0)))
        self._owner = np.pad(self._owner, (0, more))
        self._is_taken = np.pad(self._is_taken, (0, more))
        self._is_public = np.pad(self._is_public, (0, more))


def _facets_of(point: VectorPoint) -> Iterator[tuple[str, Facet]]:
    payload = point.payload
    metadata = {key.removeprefix(PREFIX): value for key, value in payload.items() if key.startswith(PREFIX)}
    return chain(facets(metadata), ((_READER, reader) for reader in payload["readers"]))
