"""Which rows have which value."""

from collections.abc import Iterable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, MetadataFilter, NoneOf, OneOf
from mindbus.metadata import Facet

Mask = NDArray[np.bool_]
# To Python, True is 1.
_Value = tuple[bool, Facet]


class Postings:
    """Values to rows, so that a filter costs what it selects, not what there is."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[_Value, set[int]]] = {}

    def add(self, row: int, facets: Iterable[tuple[str, Facet]]) -> None:
        """The row has these values."""
        for key, value in facets:
            self._rows.setdefault(key, {}).setdefault((isinstance(value, bool), value), set()).add(row)

    def remove(self, row: int, facets: Iterable[tuple[str, Facet]]) -> None:
        """The row has them no longer."""
        for key, value in facets:
            values = self._rows.get(key, {})
            rows = values.get((isinstance(value, bool), value), set())
            rows.discard(row)
            if not rows:
                values.pop((isinstance(value, bool), value), None)

    def meeting(self, wanted: MetadataFilter, size: int) -> Mask:
        """The first `size` rows that a filter means."""
        match wanted:
            case AllOf(AND=parts):
                return reduce(np.logical_and, (self.meeting(part, size) for part in parts))
            case AnyOf(OR=parts):
                return reduce(np.logical_or, (self.meeting(part, size) for part in parts))
            case NoneOf(NOT=part):
                return ~self.meeting(part, size)
            case _:
                mask = np.ones(size, dtype=np.bool_)
                for key, condition in wanted.items():
                    mask &= self.having(key, condition, size)
                return mask

    def having(self, key: str, condition: Condition, size: int) -> Mask:
        """The first `size` rows of which one value meets a condition."""
        mask = np.zeros(size, dtype=np.bool_)
        for rows in self._selected(self._rows.get(key, {}), condition):
            mask[np.fromiter(rows, dtype=np.intp, count=len(rows))] = True
        return mask

    @staticmethod
    def _selected(values: dict[_Value, set[int]], condition: Condition) -> list[set[int]]:
        match condition:
            case OneOf(any_of=wanted):
                return [values[each] for each in {(isinstance(one, bool), one) for one in wanted} & values.keys()]
            case Between():
                return [rows for (is_flag, value), rows in values.items() if not is_flag and _within(condition, value)]
            case _:
                return [values[each] for each in [(isinstance(condition, bool), condition)] if each in values]


def _within(bounds: Between, value: Facet) -> bool:
    return not isinstance(value, str) and (
        (bounds.gt is None or value > bounds.gt)
        and (bounds.gte is None or value >= bounds.gte)
        and (bounds.lt is None or value < bounds.lt)
        and (bounds.lte is None or value <= bounds.lte)
    )
