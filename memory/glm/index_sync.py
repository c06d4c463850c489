"""Outbox relay from the rows to the vector index: the rows are the source of truth."""

import asyncio
from collections.abc import Iterable, Iterator

from sqlalchemy import ColumnElement, and_, delete, func, select

from bus_schema.glm import MemoryReport
from bus_schema.replies import Code
from memory.glm.store import note_vector_writes
from memory.glm.tables import KemRow, VectorWriteRow, as_kem
from memory.rights import readers_of
from memory.vectors.index import VectorIndex, VectorPoint, point_of
from mindbus.errors import MindBusError
from mindbus.logs import logger
from mindbus.sql.database import Database

_BATCH = 500


class IndexGone(MindBusError, code=Code.FILE_NOT_FOUND):
    """Units have vectors but their server has none; bring its data back, or make them anew: mindbus glm rebuild."""


class VectorRelay:
    """Each change writes an outbox row in its own transaction; the row is deleted once the index has the unit.

    After a failure in between, the outbox row is still there and the write is repeated, which is idempotent. One relay
    runs at a time, after commits; only the instance that writes has one.
    """

    def __init__(self, database: Database, index: VectorIndex, batch: int = _BATCH) -> None:
        self.database, self.index = database, index
        self._batch = batch
        self._lock = asyncio.Lock()
        self._due = asyncio.Event()
        self._advanced = asyncio.Condition()
        self._committed = self._indexed = 0

    async def open(self) -> None:
        """Open the index; `reconcile` fills it where this process has had none, such as a standby that takes over.

        Raises IndexGone, IndexAway, IndexOfAnotherSpace.
        """
        if not await self.index.exists() and await self._has_vectors():
            if self.index.is_shared:
                raise IndexGone
            logger().warning("no index of vectors in this data folder: made anew from the rows")
        await self.index.open()

    async def relay(self) -> int:
        """Write what waits to the index; returns the number of outbox rows. Raises IndexAway, DatabaseAway."""
        written = 0
        async with self._lock:
            while count := await self._write_batch():
                written += count
        return written

    def notify(self) -> None:
        self._committed += 1
        self._due.set()

    async def step(self) -> None:
        """Wait for a commit, then relay. Raises IndexAway, DatabaseAway; the next step tries again."""
        await self._due.wait()
        committed = self._committed
        await self.relay()
        if self._committed == committed:
            self._due.clear()
        async with self._advanced:
            self._indexed = committed
            self._advanced.notify_all()

    async def catch_up(self, within_s: float) -> bool:
        """True if within that time the index has all that was committed before the call."""
        committed = self._committed
        try:
            async with asyncio.timeout(within_s), self._advanced:
                await self._advanced.wait_for(lambda: self._indexed >= committed)
        except TimeoutError:
            return False
        return True

    async def check(self) -> MemoryReport:
        """Compare the versions of rows and index; units in the outbox are not due yet. Raises IndexAway."""
        # The relay pauses meanwhile, so whatever the index lacks is still in the outbox.
        async with self._lock:
            indexed = await self.index.versions()
            async with self.database.reading() as session:
                kems = await session.scalar(select(func.count()).select_from(KemRow)) or 0
                query = select(KemRow.id, KemRow.version).where(self._is_indexable())
                versions = {row.id: row.version for row in await session.execute(query)}
                waiting = set(await session.scalars(select(VectorWriteRow.kem_id)))
        due = versions.keys() - waiting
        return MemoryReport(
            kems=kems,
            with_vector=len(versions),
            vectors=len(indexed),
            waiting=len(waiting),
            missing=tuple(sorted(due - indexed.keys())),
            stale=tuple(sorted(kem_id for kem_id in due & indexed.keys() if indexed[kem_id] != versions[kem_id])),
            surplus=tuple(sorted(indexed.keys() - versions.keys() - waiting)),
        )

    async def reconcile(self) -> MemoryReport:
        """Repair all differences; returns the report of what they were. Raises IndexAway, DatabaseAway."""
        report = await self.check()
        if differing := [*report.missing, *report.stale, *report.surplus]:
            async with self.database.transaction() as session:
                await note_vector_writes(session, differing)
        await self.relay()
        return report

    async def rebuild(self) -> int:
        """Build the index anew from the rows; returns the number of vectors. Raises IndexAway, DatabaseAway."""
        await self.index.clear()
        async with self.database.transaction() as session:
            kem_ids = (await session.scalars(select(KemRow.id).where(self._is_indexable()))).all()
            await note_vector_writes(session, kem_ids)
        await self.relay()
        return len(kem_ids)

    async def _write_batch(self) -> int:
        async with self.database.reading() as session:
            query = select(VectorWriteRow).order_by(VectorWriteRow.seq).limit(self._batch)
            writes = (await session.scalars(query)).all()
            if not writes:
                return 0
            kem_ids = {write.kem_id for write in writes}
            rows = (await session.scalars(select(KemRow).where(KemRow.id.in_(kem_ids)))).all()
        points = list(self._points(rows))
        await self.index.write(points, sorted(kem_ids - {point.kem_id for point in points}))
        async with self.database.transaction() as session:
            # By number: a change since then has an outbox row of its own.
            await session.execute(delete(VectorWriteRow).where(VectorWriteRow.seq.in_([write.seq for write in writes])))
        return len(writes)

    async def _has_vectors(self) -> bool:
        async with self.database.reading() as session:
            return await session.scalar(select(KemRow.id).where(KemRow.vector.is_not(None)).limit(1)) is not None

    def _is_indexable(self) -> ColumnElement[bool]:
        """True of units with a vector of this model; others wait for one and are found by words until then."""
        space = self.index.space
        return and_(KemRow.model == space.model, func.length(KemRow.vector) == space.bytes_of_vector)

    def _points(self, rows: Iterable[KemRow]) -> Iterator[VectorPoint]:
        space = self.index.space
        for row in rows:
            if row.vector is not None and (row.model, len(row.vector)) == (space.model, space.bytes_of_vector):
                yield point_of(as_kem(row, has_vector=False), row.vector, readers_of(row))
