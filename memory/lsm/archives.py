"""Archives of cold episodes: the texts of an episode move into one compressed artifact."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import and_, bindparam, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.dialogue import conversation_trace
from bus_schema.episodes import Layer
from bus_schema.ids import derived
from memory.lsm.archived_texts import compressed
from memory.lsm.rows import lock_chat_of, text_digest, turns_of
from memory.lsm.tables import ArchiveRow, ChatRow, EpisodeOfTurnRow, EpisodeRow, LayerChangeRow, TurnRow, of_chat
from mindbus.errors import TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import ArtifactConflict, ArtifactRejected, StorageAway
from mindbus.sdk.transfers import NewArtifact, Put
from mindbus.sql.database import Database

ARTIFACT_TYPE = "episode_turns"
_AT_ONCE = 50
# Rows of an artifact in storage and the copy of its manifest take nearly as much: who saves less stays in the log.
_LEAST_SAVED_BYTES = 4096
# Fewer words take less than that.
_LEAST_WORDS = 300
_REFUSED_AGAIN = timedelta(days=1)
_AGAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Archive:
    """The compressed texts of an episode, with the digest of each by turn; `raw_log_ids` are all turns of it."""

    episode_id: str
    content: bytes
    text_bytes: int
    digests: Mapping[str, int]
    raw_log_ids: frozenset[str]

    @property
    def is_worth_it(self) -> bool:
        return self.text_bytes - len(self.content) >= _LEAST_SAVED_BYTES

    @property
    def sha256(self) -> str:
        return sha256(self.content).hexdigest()


class EpisodeArchives:
    """Moves the texts of episodes that have been cold for long from the log into artifacts.

    The id of an artifact is stored before it is put, so that a repetition puts the same one; texts leave the log, in
    one transaction with the pointer, once storage has confirmed it. Without an age nothing is archived.
    """

    def __init__(self, database: Database, artifacts: Artifacts | None, age: timedelta | None) -> None:
        self.database, self.artifacts, self.age = database, artifacts, age
        self._at_work: str | None = None

    @property
    def pause_s(self) -> float:
        """Seconds until something may be due: a tenth of the age, between one second and a minute."""
        return 60.0 if self.age is None else min(max(self.age.total_seconds() / 10, 1.0), 60.0)

    async def step(self, now: datetime) -> int:
        """Archive some episodes of one chat, unless they are small; their number, 0 after a refusal.

        Raises StorageAway, BufferFull.
        """
        if self.age is None or self.artifacts is None:
            return 0
        chat_id, episode_ids = await self._due(now - self.age, now)
        if chat_id is None:
            return 0
        archives = [await self._archive_of(episode_id) for episode_id in episode_ids]
        try:
            begun = await self._begin(chat_id, archives, now)
            puts = await self._put(self.artifacts, chat_id, begun)
            for archive, put in zip(begun.values(), puts, strict=True):
                await self._end(archive, put, now)
        finally:
            self._at_work = None
        if any(isinstance(put, Put) and put.is_pending for put in puts):
            raise StorageAway
        return 0 if any(isinstance(put, ArtifactRejected) for put in puts) else len(archives)

    async def require_idle(self, chat_id: str | None) -> None:
        """Raises TemporaryFailure while an artifact of the chat, or any, is about to be registered.

        To be asked after an erasure within its transaction: none is begun from then on.
        """
        begun = select(ArchiveRow.artifact_id).join(EpisodeRow, EpisodeRow.id == ArchiveRow.episode_id)
        begun = begun.where(ArchiveRow.state == "begun", *of_chat(EpisodeRow, chat_id))
        async with self.database.reading() as session:
            artifact_ids = (await session.scalars(begun)).all()
        artifacts = self.artifacts
        is_waiting = artifacts is not None and any(map(artifacts.waiting, artifact_ids))
        if is_waiting or (self._at_work is not None and chat_id in (None, self._at_work)):
            raise TemporaryFailure("an archive of raw turns is about to be registered", _AGAIN)
        if artifacts is not None:
            for artifact_id in artifact_ids:
                # Rejected since the last step: the next one would have deleted the copy.
                await artifacts.delete_failed(artifact_id)

    async def _due(self, cold_by: datetime, now: datetime) -> tuple[str | None, list[str]]:
        """A chat with episodes that have been cold since then and are in the log."""
        cooled = select(func.max(LayerChangeRow.at)).where(
            LayerChangeRow.episode_id == EpisodeRow.id, LayerChangeRow.layer == Layer.COLD.value
        )
        is_open = or_(
            ArchiveRow.state.is_(None),
            ArchiveRow.state.in_(("begun", "restored")),
            and_(ArchiveRow.state == "refused", ArchiveRow.at <= now - _REFUSED_AGAIN),
        )
        is_long_cold = func.coalesce(cooled.scalar_subquery(), EpisodeRow.last_accessed) <= cold_by
        query = (
            select(EpisodeRow.chat_id, EpisodeRow.id)
            .outerjoin(ArchiveRow, ArchiveRow.episode_id == EpisodeRow.id)
            .where(EpisodeRow.layer == Layer.COLD.value, EpisodeRow.is_settled, EpisodeRow.word_count >= _LEAST_WORDS)
            .where(is_open, is_long_cold)
            .order_by(EpisodeRow.chat_id, EpisodeRow.id)
            .limit(_AT_ONCE)
        )
        async with self.database.reading() as session:
            rows = (await session.execute(query)).all()
        chat_id = rows[0].chat_id if rows else None
        return chat_id, [row.id for row in rows if row.chat_id == chat_id]

    async def _archive_of(self, episode_id: str) -> _Archive:
        async with self.database.reading() as session:
            turns = await turns_of(session, episode_id)
        return await asyncio.to_thread(_packed, episode_id, turns)

    async def _begin(self, chat_id: str, archives: Sequence[_Archive], now: datetime) -> dict[str, _Archive]:
        """Store the ids of the artifacts; by id those that are worth it, whose episodes are still as they were read."""
        begun: dict[str, _Archive] = {}
        async with self.database.transaction() as session:
            # An erasure that is under way has this lock: after it there are no episodes.
            await session.execute(select(ChatRow.chat_id).where(ChatRow.chat_id == chat_id).with_for_update())
            # Whoever erases from now on waits for the end of the step; before, the lock made this wait.
            self._at_work = chat_id
            for archive in archives:
                if not await _is_as_read(session, archive):
                    continue
                row = await session.get(ArchiveRow, archive.episode_id)
                is_known = row is not None and row.sha256 == archive.sha256
                if row is None or not is_known:
                    row = row or ArchiveRow(episode_id=archive.episode_id)
                    row.sha256 = archive.sha256
                    row.artifact_id = f"art_{derived(archive.episode_id, archive.sha256, now.isoformat())}"
                    session.add(row)
                row.state, row.at = "begun" if archive.is_worth_it else "small", now
                row.size_bytes, row.text_bytes = len(archive.content), archive.text_bytes
                if archive.is_worth_it:
                    begun[row.artifact_id] = archive
        return begun

    @staticmethod
    async def _put(
        artifacts: Artifacts, chat_id: str, begun: Mapping[str, _Archive]
    ) -> Sequence[Put | ArtifactRejected]:
        try:
            puts = await artifacts.put_all([_artifact(chat_id, id_, each) for id_, each in begun.items()])
            for artifact_id, put in zip(begun, puts, strict=True):
                if isinstance(put, ArtifactRejected) or not put.is_pending:
                    # No copy is needed: the texts are in the log, or in storage. An earlier attempt may have left one.
                    await artifacts.delete_failed(artifact_id)
        except OSError as error:
            raise StorageAway(str(error)) from error
        return puts

    async def _end(self, archive: _Archive, put: Put | ArtifactRejected, now: datetime) -> None:
        """Drop the texts that storage has; where it does not accept them, they stay."""
        if isinstance(put, ArtifactRejected):
            logger().warning("raw turns stay in the log", episode_id=archive.episode_id, reason=str(put))
        elif put.is_pending:
            return
        async with self.database.transaction() as session:
            await lock_chat_of(session, archive.episode_id)
            if not await _is_as_read(session, archive):
                return
            row = await session.get(ArchiveRow, archive.episode_id)
            assert row is not None, "it was stored before the artifact was put"
            row.at = now
            if isinstance(put, ArtifactRejected):
                row.state = "refused"
                if isinstance(put, ArtifactConflict):
                    # Storage takes the id no more, as after an expiry: the next attempt has another one.
                    row.sha256 = ""
                return
            row.state = "archived"
            moving = update(TurnRow).where(TurnRow.id == bindparam("of")).values(
                content="", archived=bindparam("digest")
            )  # fmt: skip
            rows = [{"of": raw_log_id, "digest": digest} for raw_log_id, digest in archive.digests.items()]
            await (await session.connection()).execute(moving, rows)


async def _is_as_read(session: AsyncSession, archive: _Archive) -> bool:
    """Lock the episode; whether it is still cold, with the same turns."""
    cold = (EpisodeRow.id == archive.episode_id, EpisodeRow.layer == Layer.COLD.value)
    if await session.scalar(select(EpisodeRow.id).where(*cold).with_for_update()) is None:
        return False
    of_episode = select(EpisodeOfTurnRow.raw_log_id).where(EpisodeOfTurnRow.episode_id == archive.episode_id)
    return set(await session.scalars(of_episode)) == archive.raw_log_ids


def _artifact(chat_id: str, artifact_id: str, archive: _Archive) -> NewArtifact:
    return NewArtifact(
        source=archive.content,
        artifact_id=artifact_id,
        artifact_type=ARTIFACT_TYPE,
        content_type="application/gzip",
        trace=conversation_trace(chat_id),
        step=archive.episode_id,
        visibility="private",
    )


def _packed(episode_id: str, turns: Sequence[TurnRow]) -> _Archive:
    told = [turn for turn in turns if turn.content]
    return _Archive(
        episode_id=episode_id,
        content=compressed(told),
        text_bytes=sum(len(turn.content.encode("utf-8", "surrogatepass")) for turn in told),
        digests={turn.id: text_digest(turn.content) for turn in told},
        raw_log_ids=frozenset(turn.id for turn in turns),
    )
