"""The index of vectors that needs no server: this process alone owns it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from bus_schema.kem_query import KemQuery
from memory.asker import Asker
from memory.space import Space
from memory.vectors.points import Hit, Point
from memory.vectors.shelf import Shelf
from memory.vectors.vector_file import VectorFile


class EmbeddedIndex:
    """All vectors in memory, a file to come back from; work is done in a thread, one piece at a time."""

    def __init__(self, path: Path, space: Space) -> None:
        self.space = space
        self._file = VectorFile(path, space)
        self._shelf = Shelf(space.dim)
        self._turn = asyncio.Lock()

    async def exists(self) -> bool:
        """As in VectorIndex."""
        return await asyncio.to_thread(self._file.exists)

    async def open(self) -> None:
        """As in VectorIndex."""
        async with self._turn:
            await asyncio.to_thread(self._open)

    async def write(self, points: Sequence[Point], gone: Sequence[str]) -> None:
        """As in VectorIndex; together, or not at all."""
        async with self._turn:
            await asyncio.to_thread(self._write, points, gone)

    async def nearest(self, vector: bytes, query: KemQuery, asker: Asker, limit: int) -> list[Hit]:
        """As in VectorIndex."""
        async with self._turn:
            return await asyncio.to_thread(self._shelf.nearest, vector, query, asker, limit)

    async def versions(self) -> dict[str, int]:
        """As in VectorIndex."""
        async with self._turn:
            return await asyncio.to_thread(self._shelf.versions)

    async def clear(self) -> None:
        """As in VectorIndex."""
        async with self._turn:
            await asyncio.to_thread(self._file.clear)
            self._shelf = Shelf(self.space.dim)

    async def close(self) -> None:
        """As in VectorIndex."""
        async with self._turn:
            await asyncio.to_thread(self._file.close)

    def _open(self) -> None:
        self._file.open()
        self._shelf = Shelf(self.space.dim)
        for point in self._file.read():
            self._shelf.put(point)

    def _write(self, points: Sequence[Point], gone: Sequence[str]) -> None:
        self._file.write(points, gone)
        for point in points:
            self._shelf.put(point)
        for kem_id in gone:
            self._shelf.drop(kem_id)
