"""Over years: no episode moves against the rules, none is lost, anchors stay, the log is whole."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from bus_schema.episodes import Layer
from config.settings import FleetSettings
from memory.lsm.priority import LayerRules
from memory.lsm.tables import EpisodeOfTurnRow, EpisodeRow, TurnRow
from mindbus.sql.database import Database
from tests.clocks import NOON
from tests.lsm_kit import ANNA, Archive, said
from tests.postgres import DatabaseOf

SENTENCES = (
    "We decided to move the Orion release to Friday.",
    "Анна предлагает встретиться в Казани 5 марта.",
    "The tomatoes have yellow leaves again.",
    "Решили взять PostgreSQL для проекта Орион.",
    "My name is Anna and I live in Porto.",
    "Запомни это навсегда: код от двери 4812.",
    "Nothing new today.",
)
DAY = timedelta(days=1)
TALKS_AT_MOST, TURNS_AT_MOST = 3, 8
Seen = dict[str, tuple[Layer, bool, int]]


@dataclass
class Life:
    """One chat, moved by chance; what the rules allow is said here once more, in other words than theirs."""

    archive: Archive
    chance: random.Random
    now: datetime = NOON
    said: list[str] = field(default_factory=list)
    idle_since: dict[str, datetime] = field(default_factory=dict)

    async def year(self, steps: int) -> None:
        doings: tuple[Callable[[], object], ...] = (self.talk, self.pack_what_is_due, self.use, self.unpack, self.mark)
        for _ in range(steps):
            self.now += timedelta(hours=self.chance.choice((1, 30, 24 * 8, 24 * 30, 24 * 60)))
            before = await self.seen()
            doing = self.chance.choices(doings, (5, 8, 2, 1, 1))[0]
            await doing()  # type: ignore[misc]  # each of them is asynchronous
            self.hold(before, await self.seen(), doing.__name__)
        await self.whole()

    async def talk(self) -> None:
        for _ in range(self.chance.randint(1, TALKS_AT_MOST)):
            self.now += timedelta(minutes=self.chance.choice((1, 50, 400)))
            count = self.chance.randint(1, TURNS_AT_MOST)
            turns = [
                said(f"{self.chance.choice(SENTENCES)} {len(self.said) + place}", self.now + timedelta(seconds=place))
                for place in range(count)
            ]
            self.said += [turn.content for turn in turns]
            await self.archive.record(*turns)

    async def pack_what_is_due(self) -> None:
        for episode_id, to, _ in await self.archive.due(self.now):
            head, _event = await self.archive.pack(episode_id, self.now)
            assert head.layer is to

    async def use(self) -> None:
        rows = await self.archive.episodes()
        await self.archive.touch([row.id for row in self.chance.sample(rows, min(2, len(rows)))], self.now)

    async def unpack(self) -> None:
        if rows := await self.archive.episodes():
            chosen = self.chance.choice(rows).id
            content, _ = await self.archive.unpack(chosen, self.now)
            assert len(content.raw_messages) == (await self.archive.episode(chosen)).turns

    async def mark(self) -> None:
        if rows := await self.archive.episodes():
            await self.archive.anchor(self.chance.choice(rows).id, is_anchor=self.chance.random() < 0.7)

    async def seen(self) -> dict[str, EpisodeRow]:
        return {row.id: row for row in await self.archive.episodes()}

    def hold(self, before: dict[str, EpisodeRow], after: dict[str, EpisodeRow], doing: str) -> None:
        assert before.keys() <= after.keys(), "an episode was lost"
        assert all(row.layer == Layer.HOT for key, row in after.items() if key not in before)
        for key, old in before.items():
            new = after[key]
            assert not (new.is_anchor and new.layer == Layer.COLD), "an anchor is cold"
            if old.layer != new.layer:
                self.allowed(old, new, doing)

    def allowed(self, old: EpisodeRow, new: EpisodeRow, doing: str) -> None:
        idle = self.now - old.last_accessed
        match Layer(old.layer), Layer(new.layer):
            case Layer.HOT, Layer.WARM:
                assert doing == "pack_what_is_due"
                assert idle >= 14 * DAY or not old.is_anchor
            case Layer.WARM, Layer.COLD:
                assert doing == "pack_what_is_due"
                assert idle >= 90 * DAY
                assert not old.is_anchor
                assert LayerRules().priority(old, self.now) <= 0.3
            case Layer.WARM, Layer.HOT:
                assert doing == "unpack" or (doing == "use" and old.layer_accesses == 2)
            case Layer.COLD, Layer.HOT:
                assert doing == "unpack" or (doing == "mark" and new.is_anchor)
            case moved:
                pytest.fail(f"{moved} by {doing}")

    async def whole(self) -> None:
        """Every word is in the log, every turn in one episode, every episode has what its layer keeps, no more."""
        assert sorted(await self.archive.log()) == sorted(self.said)
        assert await self.archive.count(EpisodeOfTurnRow) == await self.archive.count(TurnRow)
        async with self.archive.database.reading() as session:
            rows = (await session.scalars(select(EpisodeRow).where(EpisodeRow.chat_id == ANNA))).all()
        for row in rows:
            kept = (row.content_warm is not None, row.content_cold is not None)
            assert kept == (row.layer == Layer.WARM, row.layer == Layer.COLD)
            assert len((await self.archive.episode(row.id)).raw_log_ids) == row.turns


async def walk(database_of: DatabaseOf, seed: int, steps: int) -> None:
    settings = FleetSettings(lsm_max_turns=10, lsm_hot_tokens=400)
    archive = Archive(Database(database_of("lsm"), "lsm"), settings)
    try:
        await Life(archive, random.Random(seed)).year(steps)
    finally:
        await archive.database.dispose()


@pytest.mark.slow
async def test_years_go_by_and_every_episode_is_where_the_rules_have_it(database_of: DatabaseOf) -> None:
    await walk(database_of, seed=0, steps=20)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(1, 21))
async def test_many_lives_go_by_and_every_episode_is_where_the_rules_have_it(
    sqlite_database_of: DatabaseOf, seed: int
) -> None:
    await walk(sqlite_database_of, seed, steps=200)
