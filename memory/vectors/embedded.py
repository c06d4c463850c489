"""The index of vectors that needs no server: this process alone owns it."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from bus_schema.kem_query import KemQuery
from memory.embedding.space import EmbeddingSpace
from memory.vectors.points import Hit, Point
from memory.vectors.shelf import Shelf
from memory.vectors.vector_file import VectorFile
from mindbus.principal import Principal

P = ParamSpec("P")
R = TypeVar("R")


class EmbeddedIndex:
    """All vectors in memory, a file to come back from; one thread does one piece of work after the other.

    So whoever does not wait for a write any longer leaves it to its end: the file is not closed under it.
    """

    def __init__(self, path: Path, space: EmbeddingSpace) -> None:
        self.space = space
        self._file = VectorFile(path, space)
        self._shelf = Shelf(space.dim)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vectors")

    async def exists(self) -> bool:
        """As in VectorIndex."""
        return await self._in_turn(self._file.exists)

    async def open(self) -> None:
        """As in VectorIndex."""
        await self._in_turn(self._open)

    async def write(self, points: Sequence[Point], gone: Sequence[str]) -> None:
        """As in VectorIndex; together, or not at all."""
        await self._in_turn(self._write, points, gone)

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[Hit]:
        """As in VectorIndex."""
        return await self._in_turn(lambda: self._shelf.nearest(vector, query, principal, limit))

    async def versions(self) -> dict[str, int]:
        """As in VectorIndex."""
        return await self._in_turn(lambda: self._shelf.versions())

    async def clear(self) -> None:
        """As in VectorIndex."""
        await self._in_turn(self._clear)

    async def close(self) -> None:
        """As in VectorIndex."""
        await self._in_turn(self._file.close)

    async def _in_turn(self, work: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **named))

    def _open(self) -> None:
        self._file.open()
        self._shelf = Shelf(self.space.dim)
        for point in self._file.read():
            self._shelf.put(point)

    def _clear(self) -> None:
        self._file.clear()
        self._shelf = Shelf(self.space.dim)

    def _write(self, points: Sequence[Point], gone: Sequence[str]) -> None:
        self._file.write(points, gone)
        for point in points:
            self._shelf.put(point)
        for kem_id in gone:
            self._shelf.drop(kem_id)
