"""Inverted index from metadata values to rows."""

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from bus_schema.kem_match import Facet
from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, MetadataFilter, NoneOf, OneOf
from retrieval.vectors import Mask

# With a flag for booleans, since True == 1.
_Value = tuple[bool, Facet]


# Sets of more rows are converted to arrays once, not with every query.
_MANY = 256


class FacetIndex:
    """Rows by metadata value: evaluating a filter costs as much as it selects."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[_Value, set[int]]] = {}
        # Arrays of large sets that were queried since they last changed.
        self._arrays: dict[tuple[str, _Value], NDArray[np.intp]] = {}

    def add(self, row: int, facets: Iterable[tuple[str, Facet]]) -> None:
        """Add the values of a row."""
        for key, facet in facets:
            value = isinstance(facet, bool), facet
            self._rows.setdefault(key, {}).setdefault(value, set()).add(row)
            self._arrays.pop((key, value), None)

    def remove(self, row: int, facets: Iterable[tuple[str, Facet]]) -> None:
        """Remove the values of a row."""
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
        values, few = self._rows.get(key, {}), list[int]()
        for value in _selected(values, condition):
            if len(values[value]) < _MANY:
                few += values[value]
            else:
                mask[self._array(key, value)] = True
        mask[few] = True
        return mask

    def _array(self, key: str, value: _Value) -> NDArray[np.intp]:
        if (array := self._arrays.get((key, value))) is not None:
            return array
        rows = self._rows[key][value]
        array = self._arrays[key, value] = np.fromiter(rows, dtype=np.intp, count=len(rows))
        return array


def _selected(values: Mapping[_Value, set[int]], condition: Condition) -> Iterable[_Value]:
    match condition:
        case OneOf(any_of=wanted):
            return {(isinstance(one, bool), one) for one in wanted} & values.keys()
        case Between():
            return [(is_flag, value) for is_flag, value in values if not is_flag and _within(condition, value)]
        case _:
            return [each for each in [(isinstance(condition, bool), condition)] if each in values]


def _within(bounds: Between, value: Facet) -> bool:
    return not isinstance(value, str) and (
        (bounds.gt is None or value > bounds.gt)
        and (bounds.gte is None or value >= bounds.gte)
        and (bounds.lt is None or value < bounds.lt)
        and (bounds.lte is None or value <= bounds.lte)
    )
