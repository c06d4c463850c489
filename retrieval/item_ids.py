"""Ids of the items of a sequence, by position and back."""

from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrieval.snapshots import Snapshot


class ItemIds:
    """Ids in the order of the items; those of a snapshot stay in its file, UTF-8 of one width."""

    def __init__(self) -> None:
        self._mapped: NDArray[np.bytes_] = np.zeros(0, dtype="S1")
        # Positions of the mapped ids in the order of the ids.
        self._order: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._added: dict[str, int] = {}
        self._latest: list[str] = []

    def __len__(self) -> int:
        return len(self._mapped) + len(self._latest)

    def __getitem__(self, position: int) -> str:
        first = len(self._mapped)
        return self._latest[position - first] if position >= first else self._mapped[position].decode()

    def append(self, item_id: str) -> None:
        self._added[item_id] = len(self)
        self._latest.append(item_id)

    def positions(self, ids: Iterable[str]) -> dict[str, int]:
        """Positions of those of the ids that are there."""
        wanted = list(ids)
        found = {each: self._added[each] for each in wanted if each in self._added}
        if len(self._mapped) and len(found) < len(wanted):
            keys = np.array([each.encode() for each in wanted])
            places = np.searchsorted(self._mapped, keys, sorter=self._order)
            for each, place in zip(wanted, places.clip(max=len(self._order) - 1), strict=True):
                position = int(self._order[place])
                if self._mapped[position] == each.encode():
                    found[each] = position
        return found

    def snapshot(self) -> Snapshot:
        mapped = np.concatenate([self._mapped, np.array([each.encode() for each in self._latest], dtype=np.bytes_)])
        order = np.argsort(mapped, kind="stable").astype(np.int64)
        return Snapshot({"ids": mapped, "order": order}, {"count": len(mapped)})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> Self:
        found, count = cls(), snapshot.facts["count"]
        found._mapped, found._order = snapshot.arrays["ids"][:count], snapshot.arrays["order"][:count]
        return found
