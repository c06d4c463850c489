"""Durable queue of writes to the global memory and to a cache that is away."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy import delete, func, select, update

from bus_schema.envelope import explain
from bus_schema.ids import derived
from bus_schema.kem import Kem, KemDraft
from memory.swm.tables import PublishedRow, WriteRow
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.inbox import KEPT

Target = Literal["glm", "cache"]
BATCH = 100
# Target of unreadable writes, which are kept for inspection.
_BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class QueuedWrite:
    """Unit to be written to a target; no unit means removal from the cache. `given` names the draft's fields."""

    target: Target
    kem_id: str
    kem: Kem | None = None
    publisher: str = ""
    given: tuple[str, ...] = ()
    seq: int = 0
    message_id: str | None = None

    @property
    def draft(self) -> KemDraft:
        """The fields that the publisher gave; the global memory decides the others."""
        assert self.kem is not None
        fields: dict[str, Any] = {name: getattr(self.kem, name) for name in self.given}
        return KemDraft.model_validate(fields | {"id": self.kem_id})


class KemWriteQueue:
    """Writes in the order in which they were made, in the database until they are done."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # False if the queue of a target is known to be empty, as it mostly is.
        self._may_wait: dict[Target, bool] = {}
        self.reset()

    def reset(self) -> None:
        """Forget what is known to be empty: another instance may have written."""
        self._may_wait = {"glm": True, "cache": True}

    async def add(self, writes: Sequence[QueuedWrite], cause: str | None = None) -> None:
        """Append writes, durably, and that the message `cause` has led to them."""
        ids = dict.fromkeys(write.kem_id for write in writes)
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
        now = datetime.now(UTC)
        done = (
            []
            if cause is None
            else [PublishedRow(message_id=cause, kem_key=_key(id_), published_at=now) for id_ in ids]
        )
        async with self._database.transaction() as session:
            session.add_all([*rows, *done])
        for write in writes:
            self._may_wait[write.target] = True

    async def published_by(self, message_id: str, kem_ids: Iterable[str]) -> set[str]:
        """Those of the units whose writes a message has led to, carried out or not; none for a message that is new."""
        query = select(PublishedRow.kem_key).where(PublishedRow.message_id == message_id)
        async with self._database.reading() as session:
            keys = set(await session.scalars(query))
        return {kem_id for kem_id in kem_ids if _key(kem_id) in keys} if keys else set()

    async def forget_old(self, kept: timedelta = KEPT) -> None:
        """Remove what is known of messages so old that they no longer come again."""
        async with self._database.transaction() as session:
            await session.execute(delete(PublishedRow).where(PublishedRow.published_at < datetime.now(UTC) - kept))

    async def next(self, target: Target, limit: int = BATCH) -> list[QueuedWrite]:
        """The first writes of a target; unreadable ones are set aside."""
        if not self._may_wait[target]:
            return []
        # Before the query, so that writes made meanwhile are not missed.
        self._may_wait[target] = False
        query = select(WriteRow).where(WriteRow.target == target).order_by(WriteRow.seq).limit(limit)
        try:
            async with self._database.reading() as session:
                rows = (await session.scalars(query)).all()
        except BaseException:
            self._may_wait[target] = True
            raise
        self._may_wait[target] |= bool(rows)
        writes, broken = list[QueuedWrite](), list[int]()
        for row in rows:
            try:
                writes.append(_as_write(row))
            except ValidationError as invalid:
                logger().error("a write cannot be read", kem_id=row.kem_id, seq=row.seq, reason=explain(invalid))
                broken.append(row.seq)
        if broken:
            async with self._database.transaction() as session:
                await session.execute(update(WriteRow).where(WriteRow.seq.in_(broken)).values(target=_BROKEN))
        return writes

    async def count(self, target: Target) -> int:
        query = select(func.count()).select_from(WriteRow).where(WriteRow.target == target)
        async with self._database.reading() as session:
            return await session.scalar(query) or 0

    async def pending(self, kem_ids: Collection[str]) -> set[str]:
        """Those of these units that have queued writes to the global memory."""
        if not self._may_wait["glm"]:
            return set()
        query = select(WriteRow.kem_id).where(WriteRow.target == "glm", WriteRow.kem_id.in_(kem_ids))
        async with self._database.reading() as session:
            return set(await session.scalars(query))

    async def send_in(self, message_id: str, seqs: Sequence[int]) -> None:
        """Note the message before it is sent: whatever happens then, it is sent again as it was."""
        async with self._database.transaction() as session:
            await session.execute(update(WriteRow).where(WriteRow.seq.in_(seqs)).values(message_id=message_id))

    async def settle(self, message_id: str, done: Sequence[int]) -> None:
        """Remove what has been done by an answered message; the rest is to be sent in another one."""
        rest = update(WriteRow).where(WriteRow.message_id == message_id).values(message_id=None)
        async with self._database.transaction() as session:
            await session.execute(delete(WriteRow).where(WriteRow.seq.in_(done)))
            await session.execute(rest)

    async def latest(self, kem_id: str) -> QueuedWrite | None:
        """The last write of a unit to the global memory."""
        found = select(WriteRow).where(WriteRow.target == "glm", WriteRow.kem_id == kem_id)
        async with self._database.reading() as session:
            row = (await session.scalars(found.order_by(WriteRow.seq.desc()).limit(1))).first()
        return None if row is None else _as_write(row)

    async def remove(self, seqs: Sequence[int]) -> None:
        async with self._database.transaction() as session:
            await session.execute(delete(WriteRow).where(WriteRow.seq.in_(seqs)))

    async def cancel(self, kem_id: str) -> None:
        """Remove all writes of a unit that was deleted."""
        async with self._database.transaction() as session:
            await session.execute(delete(WriteRow).where(WriteRow.kem_id == kem_id))

    async def clear(self, is_selected: Callable[[Kem], bool]) -> int:
        """Remove the writes of selected units; returns their number."""
        async with self._database.transaction() as session:
            rows = (await session.scalars(select(WriteRow))).all()
            # Unvalidated, since unreadable writes are removed as well.
            selected = [row for row in rows if row.kem is not None and is_selected(Kem.model_construct(**row.kem))]
            for row in selected:
                await session.delete(row)
        return len(selected)


def _key(kem_id: str) -> str:
    return derived("published", kem_id)


def _as_write(row: WriteRow) -> QueuedWrite:
    """Raises ValidationError, also if the given fields make no draft."""
    kem = None if row.kem is None else Kem.model_validate(row.kem)
    target: Target = "glm" if row.target == "glm" else "cache"
    write = QueuedWrite(target, row.kem_id, kem, row.publisher, tuple(row.given), row.seq, row.message_id)
    if target == "glm":
        _ = write.draft
    return write
