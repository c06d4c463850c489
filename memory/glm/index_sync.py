"""Carries changes of units to the index of vectors, so that rows stay the truth."""

import asyncio
from collections.abc import Iterable, Iterator

from sqlalchemy import ColumnElement, and_, delete, func, select

from bus_schema.glm import MemoryReport
from bus_schema.replies import Code
from memory.glm.acl import readers_of
from memory.glm.rows import as_kem
from memory.glm.store import note_vector_writes
from memory.glm.tables import KemRow, VectorWriteRow
from memory.vectors.index import VectorIndex, VectorPoint, point_of
from mindbus.errors import MindBusError
from mindbus.sql.database import Database

_BATCH = 500


class IndexGone(MindBusError):
    """Units have vectors but their index is not there; bring it back, or make it anew: mindbus glm rebuild."""

    code = Code.FILE_NOT_FOUND


class VectorRelay:
    """A change leaves a note in its own transaction; the note goes once the index has what the row says then.

    Whatever breaks in between, the note is still there, and to write once more does no harm. One relay at a time.
    """

    def __init__(self, database: Database, index: VectorIndex, batch: int = _BATCH) -> None:
        self.database, self.index = database, index
        self._batch = batch
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Raises IndexGone, IndexAway, IndexOfAnotherSpace."""
        if not await self.index.exists() and await self._has_vectors():
            raise IndexGone(IndexGone.__doc__)
        await self.index.open()

    async def relay(self) -> int:
        """Carry what is waiting; how many notes there were. Raises IndexAway, DatabaseAway."""
        carried = 0
        async with self._turn:
            while count := await self._carry():
                carried += count
        return carried

    async def check(self) -> MemoryReport:
        """Compare versions of all units with those in the index; what waits is not yet due. Raises IndexAway."""
        # No note is carried meanwhile, so what the index does not have yet is known to wait.
        async with self._turn:
            held = await self.index.versions()
            async with self.database.reading() as session:
                kems = await session.scalar(select(func.count()).select_from(KemRow)) or 0
                query = select(KemRow.id, KemRow.version).where(self._has_a_place())
                kept = {row.id: row.version for row in await session.execute(query)}
                waiting = set(await session.scalars(select(VectorWriteRow.kem_id)))
        due = kept.keys() - waiting
        return MemoryReport(
            kems=kems,
            with_vector=len(kept),
            vectors=len(held),
            waiting=len(waiting),
            missing=tuple(sorted(due - held.keys())),
            stale=tuple(sorted(each for each in due & held.keys() if held[each] != kept[each])),
            surplus=tuple(sorted(held.keys() - kept.keys() - waiting)),
        )

    async def reconcile(self) -> MemoryReport:
        """Repair whatever differs; what it was. Raises IndexAway, DatabaseAway."""
        report = await self.check()
        if differing := [*report.missing, *report.stale, *report.surplus]:
            async with self.database.transaction() as session:
                await note_vector_writes(session, differing)
        await self.relay()
        return report

    async def rebuild(self) -> int:
        """Make the index anew from the units; how many are in it. Raises IndexAway, DatabaseAway."""
        await self.index.clear()
        async with self.database.transaction() as session:
            kem_ids = (await session.scalars(select(KemRow.id).where(self._has_a_place()))).all()
            await note_vector_writes(session, kem_ids)
        await self.relay()
        return len(kem_ids)

    async def _carry(self) -> int:
        async with self.database.reading() as session:
            query = select(VectorWriteRow).order_by(VectorWriteRow.seq).limit(self._batch)
            notes = (await session.scalars(query)).all()
            if not notes:
                return 0
            kem_ids = {each.kem_id for each in notes}
            rows = (await session.scalars(select(KemRow).where(KemRow.id.in_(kem_ids)))).all()
        points = list(self._points(rows))
        await self.index.write(points, sorted(kem_ids - {point.kem_id for point in points}))
        async with self.database.transaction() as session:
            # By number: a change since then has left a note of its own.
            await session.execute(delete(VectorWriteRow).where(VectorWriteRow.seq.in_([each.seq for each in notes])))
        return len(notes)

    async def _has_vectors(self) -> bool:
        async with self.database.reading() as session:
            return await session.scalar(select(KemRow.id).where(KemRow.vector.is_not(None)).limit(1)) is not None

    def _has_a_place(self) -> ColumnElement[bool]:
        """Units that were embedded by another model wait for a new vector; until then they are found by words."""
        space = self.index.space
        return and_(KemRow.model == space.model, func.length(KemRow.vector) == space.bytes_of_vector)

    def _points(self, rows: Iterable[KemRow]) -> Iterator[VectorPoint]:
        space = self.index.space
        for row in rows:
            if row.vector is not None and (row.model, len(row.vector)) == (space.model, space.bytes_of_vector):
                yield point_of(as_kem(row, has_vector=False), row.vector, readers_of(row))


class IndexSync:
    """Knows how many commits there were, how many the index has heard of; one instance follows, the one that writes."""

    def __init__(self, relay: VectorRelay) -> None:
        self._relay = relay
        self._due = asyncio.Event()
        self._moved = asyncio.Condition()
        self._committed = self._carried = 0

    def wake(self) -> None:
        """Something has been committed."""
        self._committed += 1
        self._due.set()

    async def step(self) -> None:
        """Wait for a commit, then carry what waits. Raises IndexAway, DatabaseAway; the next step tries again."""
        await self._due.wait()
        known = self._committed
        await self._relay.relay()
        if self._committed == known:
            self._due.clear()
        async with self._moved:
            self._carried = known
            self._moved.notify_all()

    async def catch_up(self, within_s: float) -> bool:
        """Whether the index has, within that time, all that was committed before the call."""
        known = self._committed
        try:
            async with asyncio.timeout(within_s), self._moved:
                await self._moved.wait_for(lambda: self._carried >= known)
        except TimeoutError:
            return False
        return True
