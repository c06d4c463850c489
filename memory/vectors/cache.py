"""The embedded index in memory: vectors, times, rights and facets by row."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bus_schema.identities import Principal
from bus_schema.kem_match import Facet, facets
from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf
from memory.vectors.index import PREFIX, VALID_FROM, VALID_TO, NearKem, epoch_seconds
from retrieval.similarity import as_floats, normalized, top

Mask = NDArray[np.bool_]

# With a flag for booleans, since True == 1.
_Value = tuple[bool, Facet]


# Sets of more rows are converted to arrays once, not with every query.
_MIN_ROWS = 256


class FacetIndex:
    """Rows by metadata value: evaluating a filter costs as much as it selects."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[_Value, set[int]]] = {}
        # Arrays of large sets that were queried since they last changed.
        self._arrays: dict[tuple[str, _Value], NDArray[np.intp]] = {}

    def add(self, row: int, facets: Iterable[tuple[str, Facet]]) -> None:
        for key, facet in facets:
            value = isinstance(facet, bool), facet
            self._rows.setdefault(key, {}).setdefault(value, set()).add(row)
            self._arrays.pop((key, value), None)

    def remove(self, row: int, facets: Iterable[tuple[str, Facet]]) -> None:
        for key, facet in facets:
            value = isinstance(facet, bool), facet
            values = self._rows.get(key, {})
            rows = values.get(value, set())
            rows.discard(row)
            if not rows:
                values.pop(value, None)
            self._arrays.pop((key, value), None)

    def matching(self, conditions: MetadataFilter, size: int) -> Mask:
        """Mask of the first `size` rows that match a filter."""
        match conditions:
            case AllOf(AND=parts):
                return reduce(np.logical_and, (self.matching(part, size) for part in parts))
            case AnyOf(OR=parts):
                return reduce(np.logical_or, (self.matching(part, size) for part in parts))
            case NoneOf(NOT=part):
                return ~self.matching(part, size)
            case _:
                mask = np.ones(size, dtype=np.bool_)
                for key, condition in conditions.items():
                    mask &= self.having(key, condition, size)
                return mask

    def having(self, key: str, condition: Condition, size: int) -> Mask:
        """Mask of the first `size` rows with a value under `key` that meets the condition."""
        mask = np.zeros(size, dtype=np.bool_)
        values, scattered = self._rows.get(key, {}), list[int]()
        for value in _select(values, condition):
            if len(values[value]) < _MIN_ROWS:
                scattered += values[value]
            else:
                mask[self._array(key, value)] = True
        mask[scattered] = True
        return mask

    def _array(self, key: str, value: _Value) -> NDArray[np.intp]:
        if (array := self._arrays.get((key, value))) is not None:
            return array
        rows = self._rows[key][value]
        array = self._arrays[key, value] = np.fromiter(rows, dtype=np.intp, count=len(rows))
        return array


def _select(values: Mapping[_Value, set[int]], condition: Condition) -> Iterable[_Value]:
    match condition:
        case OneOf(any_of=values_wanted):
            return {(isinstance(one, bool), one) for one in values_wanted} & values.keys()
        case Between():
            return [(is_flag, value) for is_flag, value in values if condition.holds(value)]
        case _:
            return [value for value in [(isinstance(condition, bool), condition)] if value in values]


class StoredPoint(NamedTuple):
    """A point as the file has it: the payload as JSON, which takes a fifth of the memory of its values."""

    kem_id: str
    version: int
    payload: str
    vector: bytes


_ALWAYS, _NEVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max
# No metadata key has a colon.
_READER = ":reader"


class VectorCache:
    """Exact search over all points under filters and rights. Not thread-safe."""

    def __init__(self, dim: int) -> None:
        self._matrix = VectorMatrix(dim)
        rows = self._matrix.capacity
        self._times: NDArray[np.int64] = np.zeros((rows, 4), dtype=np.int64)
        self._is_taken: Mask = np.zeros(rows, dtype=np.bool_)
        # Columns rather than facets: a set of nearly all rows would be slow.
        self._is_public: Mask = np.zeros(rows, dtype=np.bool_)
        self._owner: NDArray[np.int32] = np.zeros(rows, dtype=np.int32)
        self._owners: dict[str, int] = {}
        self._points: dict[int, StoredPoint] = {}
        self._facets = FacetIndex()

    def versions(self) -> dict[str, int]:
        return {point.kem_id: point.version for point in self._points.values()}

    def reserve(self, count: int) -> None:
        """Make room for so many points."""
        self._matrix.reserve(count)
        self._grow()

    def put(self, points: Sequence[StoredPoint]) -> None:
        """Add points of different units, in the place of those that they have."""
        for point in points:
            self.drop(point.kem_id)
        rows = self._matrix.put([point.kem_id for point in points], [point.vector for point in points])
        self._grow()
        for row, point in zip(rows, points, strict=True):
            payload = json.loads(point.payload)
            validity = payload.get(VALID_FROM, _ALWAYS), payload.get(VALID_TO, _NEVER)
            self._times[row] = payload["created_at_ts"], payload["updated_at_ts"], *validity
            self._is_taken[row] = True
            self._is_public[row] = payload["visibility"] == "public"
            self._owner[row] = self._owners.setdefault(payload["owner"], len(self._owners))
            # The vector is in the matrix already.
            self._points[row] = point._replace(vector=b"")
            self._facets.add(row, _facets_of(payload))

    def drop(self, kem_id: str) -> None:
        row = self._matrix.drop(kem_id)
        if row is not None:
            self._facets.remove(row, _facets_of(json.loads(self._points.pop(row).payload)))
            self._is_taken[row] = False

    def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        mask = self._readable(principal) & self._matching(query)
        nearest = [NearKem(self._points[row].kem_id, score) for row, score in self._matrix.nearest(vector, mask, limit)]
        return sorted(nearest, key=lambda hit: (-hit.score, hit.kem_id))

    def _readable(self, principal: Principal) -> Mask:
        size = self._matrix.size
        occupied: Mask = self._is_taken[:size]
        if principal.is_trusted:
            return occupied.copy()
        own = self._owner[:size] == self._owners.get(principal.owner, -1)
        shared: Mask = self._is_public[:size] | own | self._facets.having(_READER, principal.owner, size)
        return occupied & shared

    def _matching(self, query: KemQuery) -> Mask:
        size = self._matrix.size
        mask = self._facets.matching(query.metadata_filters, size)
        if query.ids:
            is_chosen = np.zeros(size, dtype=np.bool_)
            is_chosen[[row for kem_id in query.ids if (row := self._matrix.row_of(kem_id)) is not None]] = True
            mask &= is_chosen
        starts, ends = (query.created_at_start, query.updated_at_start), (query.created_at_end, query.updated_at_end)
        for column, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start is not None:
                mask &= self._times[:size, column] >= epoch_seconds(start)
            if end is not None:
                mask &= self._times[:size, column] <= epoch_seconds(end)
        if query.as_of is not None:
            time = epoch_seconds(query.as_of)
            mask &= (self._times[:size, 2] <= time) & (self._times[:size, 3] >= time)
        return mask

    def _grow(self) -> None:
        more = self._matrix.capacity - len(self._times)
        if not more:
            return
        self._times = np.pad(self._times, ((0, more), (0, 0)))
        self._owner = np.pad(self._owner, (0, more))
        self._is_taken = np.pad(self._is_taken, (0, more))
        self._is_public = np.pad(self._is_public, (0, more))


def _facets_of(payload: Mapping[str, Any]) -> Iterator[tuple[str, Facet]]:
    metadata = {key.removeprefix(PREFIX): value for key, value in payload.items() if key.startswith(PREFIX)}
    return chain(facets(metadata), ((_READER, reader) for reader in payload["readers"]))


_FIRST_ROWS = 1024
# Below this share of rows, copying the selected vectors is faster than comparing all of them.
_FULL_SCAN_SHARE = 0.2
# Rows per copy, so that a copy stays in the processor's cache until it is compared.
_BLOCK = 512


class VectorMatrix:
    """Vectors by key as float32 rows of length 1, shape (capacity, dim). Not thread-safe.

    Rows of dropped keys are reused, so that columns of other data can be kept beside the matrix by row.
    """

    def __init__(self, dim: int) -> None:
        self._vectors: NDArray[np.float32] = np.zeros((_FIRST_ROWS, dim), dtype=np.float32)
        self._rows: dict[str, int] = {}
        self._free: list[int] = []

    @property
    def size(self) -> int:
        """Number of rows, free ones included: all rows in use are below it."""
        return len(self._rows) + len(self._free)

    @property
    def capacity(self) -> int:
        return len(self._vectors)

    def row_of(self, key: str) -> int | None:
        return self._rows.get(key)

    def reserve(self, count: int) -> None:
        """Make room for so many rows."""
        if (more := count - self.capacity) > 0:
            self._vectors = np.pad(self._vectors, ((0, more), (0, 0)))

    def put(self, keys: Sequence[str], vectors: Sequence[bytes]) -> list[int]:
        """Add vectors, little-endian float32, for keys that have none; returns their rows."""
        if not keys:
            return []
        if self.size + len(keys) > self.capacity:
            self.reserve(max(self.size + len(keys), 2 * self.capacity))
        rows = []
        for key in keys:
            self._rows[key] = row = self._free.pop() if self._free else len(self._rows)
            rows.append(row)
        self._vectors[rows] = _directions(vectors)
        return rows

    def drop(self, key: str) -> int | None:
        """Free the row of a key; returns the row, None where there is none."""
        row = self._rows.pop(key, None)
        if row is not None:
            self._free.append(row)
        return row

    def nearest(self, vector: bytes, mask: Mask, limit: int) -> list[tuple[int, float]]:
        """Up to `limit` rows of the mask, shape (size,), with the highest cosines, best first."""
        rows = np.flatnonzero(mask)
        if not len(rows):
            return []
        scores = self._cosines(rows, _directions([vector])[0].astype(np.float32))
        return [(int(rows[place]), float(scores[place])) for place in top(scores, limit)]

    def _cosines(self, rows: NDArray[np.intp], direction: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(rows) >= self.size * _FULL_SCAN_SHARE:
            return np.asarray((self._vectors[: self.size] @ direction)[rows])
        scores = np.empty(len(rows), dtype=np.float32)
        for first in range(0, len(rows), _BLOCK):
            block = slice(first, first + _BLOCK)
            scores[block] = self._vectors[rows[block]] @ direction
        return scores


def _directions(vectors: Sequence[bytes]) -> NDArray[np.float64]:
    """Shape (vectors, dim)."""
    return normalized(as_floats(b"".join(vectors)).reshape(len(vectors), -1).astype(np.float64))
