"""Vectors in memory, compared one and all."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bus_schema.kem_matching import Facet, facets
from bus_schema.kem_query import KemQuery
from memory.vectors.facet_index import FacetIndex, Mask
from memory.vectors.index import PREFIX, NearKem, VectorPoint, epoch_seconds
from mindbus.principal import Principal

_FIRST_ROWS = 1024
# Below this share it is quicker to copy the vectors that are meant than to compare all of them.
_FEW = 0.2
# So many copies stay in the processor's cache until they are compared.
_BLOCK = 512
# No key of metadata has a colon.
_READER = ":reader"


class VectorCache:
    """Exact: the nearest are the nearest. Whoever uses it sees to it that nobody else does so at the same time."""

    def __init__(self, dim: int) -> None:
        self._vectors: NDArray[np.float32] = np.zeros((_FIRST_ROWS, dim), dtype=np.float32)
        self._times: NDArray[np.int64] = np.zeros((_FIRST_ROWS, 2), dtype=np.int64)
        self._is_taken: Mask = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        # What nearly every row may share is compared in a column: a set of nearly all of them would be slow.
        self._is_public: Mask = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self._owner: NDArray[np.int32] = np.zeros(_FIRST_ROWS, dtype=np.int32)
        self._owners: dict[str, int] = {}
        self._points: dict[int, VectorPoint] = {}
        self._row_of: dict[str, int] = {}
        self._free: list[int] = []
        self._postings = FacetIndex()

    def versions(self) -> dict[str, int]:
        """As in VectorIndex."""
        return {point.kem_id: point.version for point in self._points.values()}

    def put(self, point: VectorPoint) -> None:
        """In place of the older one, if there is one."""
        self.drop(point.kem_id)
        row = self._free.pop() if self._free else len(self._row_of)
        if row == len(self._vectors):
            self._grow()
        vector = np.frombuffer(point.vector, dtype="<f4").astype(np.float64)
        self._vectors[row] = vector / np.linalg.norm(vector)
        self._times[row] = point.payload["created_at_ts"], point.payload["updated_at_ts"]
        self._is_taken[row] = True
        self._is_public[row] = point.payload["visibility"] == "public"
        self._owner[row] = self._owners.setdefault(point.payload["owner"], len(self._owners))
        # Its vector is in the matrix.
        self._points[row] = VectorPoint(point.kem_id, point.version, b"", point.payload)
        self._row_of[point.kem_id] = row
        self._postings.add(row, _facets(point))

    def drop(self, kem_id: str) -> None:
        """Whether or not it is there."""
        row = self._row_of.pop(kem_id, None)
        if row is not None:
            self._postings.remove(row, _facets(self._points.pop(row)))
            self._is_taken[row] = False
            self._free.append(row)

    def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        """As in VectorIndex."""
        size = len(self._row_of) + len(self._free)
        mask = self._readable(principal, size) & self._meant(query, size)
        rows = np.flatnonzero(mask)
        if not len(rows):
            return []
        wanted = np.frombuffer(vector, dtype="<f4").astype(np.float64)
        direction = (wanted / np.linalg.norm(wanted)).astype(np.float32)
        scores = self._scores(rows, direction, size)
        best = np.argpartition(-scores, limit - 1)[:limit] if limit < len(rows) else np.arange(len(rows))
        hits = [NearKem(self._points[int(rows[each])].kem_id, float(scores[each])) for each in best]
        return sorted(hits, key=lambda hit: (-hit.score, hit.kem_id))

    def _scores(self, rows: NDArray[np.intp], direction: NDArray[np.float32], size: int) -> NDArray[np.float32]:
        if len(rows) >= size * _FEW:
            return np.asarray((self._vectors[:size] @ direction)[rows])
        scores = np.empty(len(rows), dtype=np.float32)
        for first in range(0, len(rows), _BLOCK):
            block = slice(first, first + _BLOCK)
            scores[block] = self._vectors[rows[block]] @ direction
        return scores

    def _readable(self, principal: Principal, size: int) -> Mask:
        taken: Mask = self._is_taken[:size]
        if principal.is_trusted:
            return taken.copy()
        own = self._owner[:size] == self._owners.get(principal.owner, -1)
        shown: Mask = self._is_public[:size] | own | self._postings.having(_READER, principal.owner, size)
        return taken & shown

    def _meant(self, query: KemQuery, size: int) -> Mask:
        mask = self._postings.meeting(query.metadata_filters, size)
        if query.ids:
            mask &= np.isin(np.arange(size), [self._row_of[each] for each in query.ids if each in self._row_of])
        starts, ends = (query.created_at_start, query.updated_at_start), (query.created_at_end, query.updated_at_end)
        for column, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start is not None:
                mask &= self._times[:size, column] >= epoch_seconds(start)
            if end is not None:
                mask &= self._times[:size, column] <= epoch_seconds(end)
        return mask

    def _grow(self) -> None:
        more = len(self._vectors)
        self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._times = np.concatenate([self._times, np.zeros_like(self._times)])
        self._owner = np.concatenate([self._owner, np.zeros_like(self._owner)])
        nothing = np.zeros(more, dtype=np.bool_)
        self._is_taken = np.concatenate([self._is_taken, nothing])
        self._is_public = np.concatenate([self._is_public, nothing])


def _facets(point: VectorPoint) -> Iterator[tuple[str, Facet]]:
    payload = point.payload
    metadata = {key.removeprefix(PREFIX): value for key, value in payload.items() if key.startswith(PREFIX)}
    return chain(facets(metadata), ((_READER, reader) for reader in payload["readers"]))
