"""Long-term memory over a real database, with a clock that stands still."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from bus_schema.episodes import ColdContent, Episode, Layer, WarmContent
from bus_schema.lsm import SetAnchor
from bus_schema.lsm_statistics import EpisodeStats
from bus_schema.packer import ApplyPack, PackReport
from config.settings import FleetSettings
from memory.lsm.recorder import RecordingResult, Utterance
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import EpisodeRow, TurnRow
from memory.packing.cold import cold_of
from memory.packing.warm import warm_of
from mindbus.sql.database import Database
from tests.clocks import NOON, Clock

ANNA = "anna"


def said(content: str, time: datetime = NOON, role: str = "user", **fields: Any) -> Utterance:
    return Utterance(fields.pop("message_id", None), role, content, time, **fields)


def talk(*contents: str, begins: datetime = NOON, every: timedelta = timedelta(minutes=1)) -> list[Utterance]:
    """A dialogue, the user first."""
    roles = ("user", "assistant")
    return [said(text, begins + place * every, roles[place % 2]) for place, text in enumerate(contents)]


def a_report(maker: str = "test") -> PackReport:
    return PackReport(maker=maker, words_before=100, words_after=20, verified=True)


@dataclass
class Archive:
    """Writes as the runtime does, a transaction a message."""

    database: Database
    settings: FleetSettings = field(default_factory=lambda: FleetSettings(lsm_max_turns=6))
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.memory = LongTermMemory(self.database, self.settings, self.clock)

    async def work(self, doing: Any) -> Any:
        """In the transaction of a message."""
        async with self.database.at_hand():
            return await doing()

    async def record(self, *messages: Utterance, chat: str = ANNA) -> RecordingResult:
        outcome: RecordingResult = await self.work(lambda: self.memory.recorder.record(chat, messages))
        return outcome

    async def episode(self, episode_id: str, at: datetime = NOON) -> Episode:
        return await self.memory.queries.episode(episode_id, at)

    async def episodes(self, chat: str = ANNA) -> Sequence[EpisodeRow]:
        """In the order in which they began."""
        query = select(EpisodeRow).where(EpisodeRow.chat_id == chat).order_by(EpisodeRow.started_at, EpisodeRow.id)
        async with self.database.reading() as session:
            return (await session.scalars(query)).all()

    async def log(self, chat: str = ANNA) -> list[str]:
        """What was said, in its order."""
        query = select(TurnRow.content).where(TurnRow.chat_id == chat).order_by(TurnRow.time, TurnRow.position)
        async with self.database.reading() as session:
            return list(await session.scalars(query))

    async def count(self, table: Any) -> int:
        async with self.database.reading() as session:
            return await session.scalar(select(func.count()).select_from(table)) or 0

    async def due(self, at: datetime, after: str | None = None, limit: int = 50) -> list[tuple[str, Layer, str]]:
        found = await self.memory.schedule.due(at, after, limit)
        return [(item.episode_id, item.to, item.trigger) for item in found.items]

    async def pack(self, episode_id: str, at: datetime = NOON, **changes: Any) -> Any:
        """Down one layer, as the packer would propose it."""
        return await self.apply(await self.proposal(episode_id, at, **changes))

    async def proposal(self, episode_id: str, at: datetime = NOON, **changes: Any) -> ApplyPack:
        episode = await self.episode(episode_id, at)
        content = packed(episode)
        to = Layer(content.layer)
        proposed = {"to": to, "content": content, "expected_version": episode.version, "report": a_report(), "at": at}
        return ApplyPack.model_validate({"episode_id": episode_id} | proposed | changes)

    async def apply(self, command: ApplyPack) -> Any:
        at = command.at or self.clock()
        return await self.work(lambda: self.memory.packs.apply(command, at))

    async def unpack(self, episode_id: str, at: datetime = NOON) -> Any:
        return await self.work(lambda: self.memory.reactivation.unpack(episode_id, at))

    async def anchor(self, episode_id: str, **fields: Any) -> Any:
        command = SetAnchor(episode_id=episode_id, **fields)
        return await self.work(lambda: self.memory.reactivation.set_anchor(command, self.clock()))

    async def touch(self, episode_ids: Iterable[str], at: datetime = NOON) -> list[Any]:
        return list(await self.work(lambda: self.memory.reactivation.touch(episode_ids, at, "srch_1")))

    async def stats(self, chat: str | None = None) -> EpisodeStats:
        return await self.memory.statistics.count(chat)


def packed(episode: Episode) -> WarmContent | ColdContent:
    """The next layer's content of an episode."""
    match episode.content:
        case WarmContent() as warm:
            return cold_of(warm, episode.words)
        case ColdContent() as cold:
            return cold
        case hot:
            return warm_of(hot.raw_messages)
