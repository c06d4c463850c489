"""Texts of archived turns: read from the artifacts of their episodes, put into the log again."""

import asyncio
import gzip
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cachetools import LRUCache
from sqlalchemy import and_, bindparam, select, update
from sqlalchemy.orm.attributes import set_committed_value

from bus_schema.artifacts import Manifest
from bus_schema.dialogue import conversation_trace
from memory.errors import RawTurnsGone
from memory.lsm.log_changes import LogListener
from memory.lsm.tables import ArchiveRow, EpisodeOfTurnRow, TurnRow
from mindbus.errors import TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import ArtifactUnreadable, CircuitOpen, StorageAway
from mindbus.sdk.requests import CircuitBreaker
from mindbus.sql.database import Database
from mindbus.tasks import gather_limited

_IDS = 500
# As many manifests as storage returns at once.
_MANIFESTS = 100
_CACHED_CHARS = 16 * 1024**2
_AGAIN = timedelta(seconds=1)
_AT_ONCE_S = 1.0
_READ_AT_ONCE = 8


# Texts of artifacts of a chat, by artifact, then by position.
Reading = Callable[[str, Sequence[str]], Awaitable[Mapping[str, Mapping[int, str]]]]


class ArchivedTexts(LogListener):
    """Texts that are in artifacts; those of the episodes read last stay in memory."""

    def __init__(self, database: Database, artifacts: Artifacts | None) -> None:
        self.database, self.artifacts = database, artifacts
        # By artifact: texts by position in the chat.
        self._read: LRUCache[str, Mapping[int, str]] = LRUCache(_CACHED_CHARS, _size_of)
        self._of_searches = CircuitBreaker(opens_after=1, counts=StorageAway)
        self._of_others = CircuitBreaker(opens_after=1, counts=StorageAway)

    def on_erased(self, chat_id: str | None) -> None:
        self._read.clear()

    async def fill(self, turns: Sequence[TurnRow]) -> None:
        """Give archived turns their texts, unless the artifact is gone or unreadable. Raises StorageAway."""
        set_texts(turns, await self.of([turn.id for turn in turns if turn.archived is not None]))

    async def of(self, raw_log_ids: Collection[str]) -> dict[str, str]:
        """Texts of archived turns by id, without those whose artifact is gone or unreadable. Raises StorageAway."""
        return await self._of(raw_log_ids, self._from_storage)

    async def _of(self, raw_log_ids: Collection[str], read: Reading) -> dict[str, str]:
        wanted = list(raw_log_ids)
        places = await self._places(wanted)
        artifact_ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for place in places:
            artifact_ids[place.chat_id][place.artifact_id] = None
        texts: dict[str, Mapping[int, str]] = {}
        for chat_id, ids in artifact_ids.items():
            texts |= {each: known for each in ids if (known := self._read.get(each)) is not None}
            if lacking := [each for each in ids if each not in texts]:
                texts |= await read(chat_id, lacking)
        found = {
            place.id: text
            for place in places
            if (text := texts.get(place.artifact_id, {}).get(place.position)) is not None
        }
        # Those that have come back into the log since they were seen to be archived.
        return found | await self._of_log(list({*wanted} - {place.id for place in places}))

    async def at_once(self, raw_log_ids: Collection[str]) -> dict[str, str]:
        """As `of`, for whoever cannot wait: those in memory, and those that can be read within a second."""
        return await self._of(raw_log_ids, self._if_there)

    async def fill_if_there(self, turns: Sequence[TurnRow]) -> bool:
        """As `fill`, at once; without storage archived turns stay without texts, and it is False."""
        archived = [turn for turn in turns if turn.archived is not None]
        if not archived:
            return True
        try:
            # Their failures are none of the searches', which need less.
            read = partial(self._at_once, self._of_others)
            set_texts(archived, await self._of([turn.id for turn in archived], read))
        except StorageAway as error:
            logger().warning("archived turns are left out: they cannot be read", reason=str(error))
            return False
        return True

    async def of_episode(self, episode_id: str) -> dict[str, str]:
        """All archived texts of an episode by turn, none if it is not archived. Raises RawTurnsGone, StorageAway."""
        query = select(TurnRow.id).join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
        archived = query.where(EpisodeOfTurnRow.episode_id == episode_id, TurnRow.archived.is_not(None))
        async with self.database.reading() as session:
            ids = set(await session.scalars(archived))
        texts = await self.of(ids)
        if texts.keys() < ids:
            raise RawTurnsGone(episode_id=episode_id)
        return texts

    async def restore(self, episode_id: str, texts: Mapping[str, str], at: datetime) -> None:
        """Put the texts of `of_episode` into the log again, in the current transaction. Raises TemporaryFailure."""
        session = self.database.session
        row = await session.scalar(select(ArchiveRow).where(ArchiveRow.episode_id == episode_id).with_for_update())
        if row is not None and row.state == "small":
            # It may grow.
            await session.delete(row)
        if row is None or row.state != "archived":
            return
        if not texts:
            raise TemporaryFailure("the episode has been archived just now", _AGAIN)
        restoring = update(TurnRow).where(TurnRow.id == bindparam("of")).values(
            content=bindparam("text"), archived=None
        )  # fmt: skip
        await (await session.connection()).execute(
            restoring, [{"of": id_, "text": text} for id_, text in texts.items()]
        )
        row.state, row.at = "restored", at

    async def _places(self, raw_log_ids: Sequence[str]) -> list[Any]:
        """Chat, position and artifact of those of the turns that are archived."""
        query = (
            select(TurnRow.id, TurnRow.chat_id, TurnRow.position, ArchiveRow.artifact_id)
            .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
            .join(ArchiveRow, ArchiveRow.episode_id == EpisodeOfTurnRow.episode_id)
        )
        places: list[Any] = []
        for start in range(0, len(raw_log_ids), _IDS):
            some = and_(TurnRow.id.in_(raw_log_ids[start : start + _IDS]), TurnRow.archived.is_not(None))
            async with self.database.reading() as session:
                places += await session.execute(query.where(some))
        return places

    async def _of_log(self, raw_log_ids: Sequence[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for start in range(0, len(raw_log_ids), _IDS):
            some = and_(TurnRow.id.in_(raw_log_ids[start : start + _IDS]), TurnRow.archived.is_(None))
            async with self.database.reading() as session:
                rows = (await session.execute(select(TurnRow.id, TurnRow.content).where(some))).all()
            texts |= {row.id: row.content for row in rows}
        return texts

    async def _if_there(self, chat_id: str, artifact_ids: Sequence[str]) -> Mapping[str, Mapping[int, str]]:
        try:
            return await self._at_once(self._of_searches, chat_id, artifact_ids)
        except StorageAway as error:
            logger().warning("found turns are left out: their archives cannot be read", reason=str(error))
            # What came within the second.
            return {each: texts for each in artifact_ids if (texts := self._read.get(each)) is not None}

    async def _at_once(
        self, breaker: CircuitBreaker, chat_id: str, artifact_ids: Sequence[str]
    ) -> Mapping[str, Mapping[int, str]]:
        try:
            with breaker.guard():
                return await self._within(_AT_ONCE_S, chat_id, artifact_ids)
        except CircuitOpen as error:
            raise StorageAway(str(error)) from error

    async def _within(
        self, seconds: float, chat_id: str, artifact_ids: Sequence[str]
    ) -> Mapping[str, Mapping[int, str]]:
        try:
            async with asyncio.timeout(seconds):
                return await self._from_storage(chat_id, artifact_ids)
        except TimeoutError as error:
            raise StorageAway(f"archives were not read within {seconds:g} s") from error

    async def _from_storage(self, chat_id: str, artifact_ids: Sequence[str]) -> Mapping[str, Mapping[int, str]]:
        """Texts by artifact, then by position."""
        found: dict[str, Mapping[int, str]] = {}
        for start in range(0, len(artifact_ids), _MANIFESTS):
            some = artifact_ids[start : start + _MANIFESTS]
            manifests = await self._open.manifests(some, trace=conversation_trace(chat_id))
            if gone := [each for each in some if each not in manifests]:
                logger().warning("raw turns are gone: storage has no such artifact", artifacts=gone[:10])
            readings = [partial(self._content, chat_id, manifest) for manifest in manifests.values()]
            for artifact_id, texts in zip(manifests, await gather_limited(readings, _READ_AT_ONCE), strict=True):
                if texts is not None:
                    found[artifact_id] = texts
        return found

    async def _content(self, chat_id: str, manifest: Manifest) -> Mapping[int, str] | None:
        try:
            async with self._open.open_found(manifest, trace=conversation_trace(chat_id)) as reader:
                content = b"".join([piece async for piece in reader])
        except ArtifactUnreadable as error:
            logger().warning("raw turns cannot be read", artifact_id=manifest.id, reason=str(error))
            return None
        except OSError as error:
            raise StorageAway(str(error)) from error
        self._read[manifest.id] = texts = await asyncio.to_thread(_unpacked, content)
        return texts

    @property
    def _open(self) -> Artifacts:
        if self.artifacts is None:
            raise StorageAway("this process has no access to artifacts")
        return self.artifacts


def compressed(turns: Sequence[TurnRow]) -> bytes:
    """Content of the artifact: a line of JSON for each turn; equal turns make equal bytes."""
    lines = [
        json.dumps(
            {
                "position": turn.position,
                "time": turn.time.isoformat(),
                "role": turn.role,
                **({"speaker": turn.speaker} if turn.speaker else {}),
                "content": turn.content,
            },
            ensure_ascii=False,
        )
        for turn in turns
    ]
    return gzip.compress("\n".join(lines).encode("utf-8", "surrogatepass"), 9, mtime=0)


def set_texts(turns: Sequence[TurnRow], texts: Mapping[str, str]) -> None:
    """Give the turns these texts, by id."""
    for turn in turns:
        if turn.id in texts:
            # No change of the row.
            set_committed_value(turn, "content", texts[turn.id])


def _unpacked(content: bytes) -> dict[int, str]:
    lines = gzip.decompress(content).decode("utf-8", "surrogatepass").split("\n")
    turns = map(json.loads, filter(None, lines))
    return {turn["position"]: turn["content"] for turn in turns}


def _size_of(texts: Mapping[int, str]) -> int:
    return sum(map(len, texts.values()))
