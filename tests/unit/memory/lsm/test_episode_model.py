"""Episodes in any order of talk, packing, use, anchors and restarts: what always holds of them."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bus_schema.episodes import ColdContent, Content, Episode, HotContent, Layer, WarmContent
from bus_schema.packer import ApplyPack
from memory.errors import AnchorsStay, EpisodeHasChanged, NotTheNextLayer
from memory.lsm.tables import MIGRATIONS
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from tests.clocks import Clock
from tests.lsm_kit import Archive, said

T = TypeVar("T")
CHATS = st.sampled_from(["anna", "boris"])
SAID = st.lists(
    st.sampled_from(
        [
            "Let us decide on the database for the Orion project.",
            "PostgreSQL would suit it, Maria from Berlin said so.",
            "We decided to use PostgreSQL for the Orion project.",
            "Thanks.",
            "Мы решили перенести встречу с Анной на 3 марта.",
        ]
    ),
    min_size=1,
    max_size=4,
)
PAUSES = st.sampled_from([timedelta(minutes=1), timedelta(hours=9), timedelta(days=15), timedelta(days=100)])


def unmarked(content: Content) -> Content:
    """Content without what later messages say of its decisions: that is read, not stored."""
    if isinstance(content, ColdContent):
        return content
    decisions = tuple(each.model_copy(update={"superseded_by": ()}) for each in content.decisions)
    return content.model_copy(update={"decisions": decisions})


CONTENTS = {Layer.HOT: HotContent, Layer.WARM: WarmContent, Layer.COLD: ColdContent}


@cache
def empty() -> bytes:
    """A database as a first start leaves it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lsm.db"
        asyncio.run(migrated(Database(f"sqlite+aiosqlite:///{file}", "lsm")))
        return file.read_bytes()


async def migrated(database: Database) -> None:
    await upgrade(database, MIGRATIONS)
    await database.truncate_log()
    await database.dispose()


class EpisodeLife(RuleBasedStateMachine):
    """The model: all that was said; of each episode, how it was when it was last looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "lsm.db").write_bytes(empty())
        self.clock = Clock()
        self.said: dict[str, list[tuple[str, str]]] = {}
        self.known: dict[str, Episode] = {}
        self.proposals: list[ApplyPack] = []
        self.open()

    def open(self) -> None:
        self.archive = Archive(Database(f"sqlite+aiosqlite:///{self.folder / 'lsm.db'}", "lsm"), clock=self.clock)

    def run(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(work)

    @rule(chat=CHATS, contents=SAID, again=st.booleans())
    def talk(self, chat: str, contents: list[str], again: bool) -> None:
        mine = self.said.setdefault(chat, [])
        messages = []
        for place, content in enumerate(contents):
            message_id = f"msg_{chat}_{len(mine)}"
            mine.append((message_id, content))
            role = ("user", "assistant")[place % 2]
            messages.append(said(content, self.clock(), role, message_id=message_id))
            self.clock.advance(seconds=20)
        for _ in range(2 if again else 1):
            self.run(self.archive.record(*messages, chat=chat))

    @precondition(lambda self: self.known)
    @rule(data=st.data(), times=st.integers(0, 2))
    def pack(self, data: st.DataObject, times: int) -> None:
        episode_id = data.draw(st.sampled_from(sorted(self.known)))
        for _ in range(times):
            self.propose(episode_id)
            self.apply(self.proposals[-1])
            self.known[episode_id] = self.run(self.archive.episode(episode_id, self.clock()))
        self.propose(episode_id)

    def propose(self, episode_id: str) -> None:
        self.proposals.append(self.run(self.archive.proposal(episode_id, self.clock())))

    @precondition(lambda self: self.proposals)
    @rule(data=st.data())
    def apply_an_earlier_pack(self, data: st.DataObject) -> None:
        self.apply(data.draw(st.sampled_from(self.proposals)))

    def apply(self, pack: ApplyPack) -> None:
        before = self.known[pack.episode_id]
        try:
            _head, event = self.run(self.archive.apply(pack))
        except EpisodeHasChanged:
            assert pack.expected_version != before.version
            return
        except NotTheNextLayer:
            assert (before.layer, pack.to) in {(Layer.COLD, Layer.COLD), (Layer.HOT, Layer.COLD)}
            return
        except AnchorsStay:
            assert before.is_anchor
            return
        after = self.run(self.archive.episode(pack.episode_id, self.clock()))
        if event is None:
            assert after.layer == before.layer == pack.to, "the same pack again changes nothing"
            assert after.version == before.version
        else:
            layers = list(Layer)
            assert layers.index(after.layer) == layers.index(before.layer) + 1, "down one layer at a time"
            assert not (after.layer is Layer.COLD and before.is_anchor)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def unpack(self, data: st.DataObject) -> None:
        episode_id = data.draw(st.sampled_from(sorted(self.known)))
        content, _ = self.run(self.archive.unpack(episode_id, self.clock()))
        contents = [turn.content for turn in content.raw_messages]
        everything = {content for mine in self.said.values() for _, content in mine}
        assert contents
        assert set(contents) <= everything, "what was packed comes back as it was said"
        assert self.run(self.archive.episode(episode_id, self.clock())).layer is Layer.HOT

    @precondition(lambda self: self.known)
    @rule(data=st.data(), times=st.integers(1, 4))
    def touch(self, data: st.DataObject, times: int) -> None:
        episode_id = data.draw(st.sampled_from(sorted(self.known)))
        for _ in range(times):
            self.run(self.archive.touch([episode_id], self.clock()))

    @precondition(lambda self: self.known)
    @rule(data=st.data(), is_anchor=st.booleans())
    def anchor(self, data: st.DataObject, is_anchor: bool) -> None:
        fields: dict[str, Any] = {"is_anchor": is_anchor} | ({"reason": "explicit"} if is_anchor else {})
        self.run(self.archive.anchor(data.draw(st.sampled_from(sorted(self.known))), **fields))

    @rule(pause=PAUSES)
    def let_time_pass(self, pause: timedelta) -> None:
        self.clock.now += pause

    @rule()
    def restart(self) -> None:
        self.run(self.archive.database.dispose())
        self.open()

    @invariant()
    def holds(self) -> None:
        for chat, mine in self.said.items():
            assert self.run(self.archive.log(chat)) == [content for _, content in mine], "the log is complete"
            rows = self.run(self.archive.episodes(chat))
            episodes = [self.run(self.archive.episode(row.id, self.clock())) for row in rows]
            logged = [each for episode in episodes for each in episode.raw_log_ids]
            assert len(logged) == len(set(logged)) == len(mine), "every turn is in one episode"
            for episode in episodes:
                self.holds_of(episode)
        due = self.run(self.archive.due(self.clock()))
        for episode_id, to, _ in due:
            assert (self.known[episode_id].layer, to) in {(Layer.HOT, Layer.WARM), (Layer.WARM, Layer.COLD)}
            assert not (to is Layer.COLD and self.known[episode_id].is_anchor)

    def holds_of(self, episode: Episode) -> None:
        assert isinstance(episode.content, CONTENTS[episode.layer]), "its content is that of its layer, no other"
        assert not (episode.is_anchor and episode.layer is Layer.COLD), "an anchor never goes to the bottom"
        before = self.known.get(episode.id)
        if before is not None:
            assert episode.version >= before.version
            is_same = episode.version == before.version
            assert not is_same or (episode.layer, unmarked(episode.content)) == (before.layer, unmarked(before.content))
        self.known[episode.id] = episode

    def teardown(self) -> None:
        self.run(self.archive.database.dispose())
        self.loop.close()
        shutil.rmtree(self.folder)


class EpisodeLifeAtLength(EpisodeLife):
    pass


EpisodeLife.TestCase.settings = settings(max_examples=8, stateful_step_count=20)
EpisodeLifeAtLength.TestCase.settings = settings(max_examples=200, stateful_step_count=50)
TestEpisodeLife = EpisodeLife.TestCase
TestEpisodeLifeAtLength = pytest.mark.proof(EpisodeLifeAtLength.TestCase)
