"""WriteQueue that are under way, in the order in which they were made."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy import delete, func, select, update

from bus_schema.envelope import explain
from bus_schema.kem import Kem, KemDraft
from memory.swm.tables import WriteRow
from mindbus.logs import logger
from mindbus.sql.database import Database

Target = Literal["glm", "cache"]
BATCH = 100
# Where a write is kept that nobody can read: for whoever looks after the database.
_BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class QueuedWrite:
    """A unit for a target; without one, the cache is to drop it. `given` is what its publisher has said of it."""

    target: Target
    kem_id: str
    kem: Kem | None = None
    publisher: str = ""
    given: tuple[str, ...] = ()
    seq: int = 0

    @property
    def draft(self) -> KemDraft:
        """What its publisher has said, no more: of the rest the global memory knows better."""
        assert self.kem is not None
        fields: dict[str, Any] = {name: getattr(self.kem, name) for name in self.given}
        return KemDraft.model_validate(fields | {"id": self.kem_id})


class WriteQueue:
    """Kept in the database until they have arrived."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Whether there may be some: mostly there are none, which need not be looked up again and again.
        self._may_wait: dict[Target, bool] = {}
        self.begin()

    def begin(self) -> None:
        """Another instance may have left some."""
        self._may_wait = {"glm": True, "cache": True}

    async def add(self, writes: Sequence[QueuedWrite]) -> None:
        """From now on they are not lost."""
        rows = [
            WriteRow(
                target=write.target,
                kem_id=write.kem_id,
                kem=None if write.kem is None else write.kem.model_dump(mode="json"),
                publisher=write.publisher,
                given=list(write.given),
            )
            for write in writes
        ]
        async with self._database.transaction() as session:
            session.add_all(rows)
        for write in writes:
            self._may_wait[write.target] = True

    async def next(self, target: Target, limit: int = BATCH) -> list[QueuedWrite]:
        """Those that come first; what cannot be read is put aside, so that it does not keep the others."""
        if not self._may_wait[target]:
            return []
        # Before it looks, for what comes meanwhile.
        self._may_wait[target] = False
        query = select(WriteRow).where(WriteRow.target == target).order_by(WriteRow.seq).limit(limit)
        async with self._database.reading() as session:
            rows = (await session.scalars(query)).all()
        self._may_wait[target] |= bool(rows)
        found, broken = list[QueuedWrite](), list[int]()
        for row in rows:
            try:
                found.append(_as_write(row))
            except ValidationError as invalid:
                logger().error("a write cannot be read", kem_id=row.kem_id, seq=row.seq, reason=explain(invalid))
                broken.append(row.seq)
        if broken:
            async with self._database.transaction() as session:
                await session.execute(update(WriteRow).where(WriteRow.seq.in_(broken)).values(target=_BROKEN))
        return found

    async def count(self, target: Target) -> int:
        """How many there are."""
        query = select(func.count()).select_from(WriteRow).where(WriteRow.target == target)
        async with self._database.reading() as session:
            return await session.scalar(query) or 0

    async def pending(self, kem_ids: Collection[str]) -> set[str]:
        """Which of these units are on their way into the global memory."""
        if not self._may_wait["glm"]:
            return set()
        query = select(WriteRow.kem_id).where(WriteRow.target == "glm", WriteRow.kem_id.in_(kem_ids))
        async with self._database.reading() as session:
            return set(await session.scalars(query))

    async def arrived(self, seqs: Sequence[int]) -> None:
        """They need not be kept any longer."""
        async with self._database.transaction() as session:
            await session.execute(delete(WriteRow).where(WriteRow.seq.in_(seqs)))

    async def forget(self, kem_id: str) -> None:
        """The unit has been deleted."""
        async with self._database.transaction() as session:
            await session.execute(delete(WriteRow).where(WriteRow.kem_id == kem_id))

    async def clear(self, is_meant: Callable[[Kem], bool]) -> int:
        """Drop those of such units; how many there were."""
        async with self._database.transaction() as session:
            rows = (await session.scalars(select(WriteRow))).all()
            # Unchecked, since what cannot be read is to go as well.
            gone = [row for row in rows if row.kem is not None and is_meant(Kem.model_construct(**row.kem))]
            for row in gone:
                await session.delete(row)
        return len(gone)


def _as_write(row: WriteRow) -> QueuedWrite:
    """Raises ValidationError, also where what was given makes no draft."""
    kem = None if row.kem is None else Kem.model_validate(row.kem)
    target: Target = "glm" if row.target == "glm" else "cache"
    write = QueuedWrite(target, row.kem_id, kem, row.publisher, tuple(row.given), row.seq)
    if target == "glm":
        _ = write.draft
    return write
