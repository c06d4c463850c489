"""Agents that put artifacts through the SDK for as long as they may, remembering all that they were told."""

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from bus_schema.artifacts import ArtifactRef
from bus_schema.ids import mint
from config.settings import FleetSettings
from mindbus import connect
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.testing.wait import until

TRACE = "run_under_fire"
_SHARED = 12
_IS_SHARED, _GOES_ON, _IS_SAID_TWICE, _IS_LARGE = 0.25, 0.2, 0.12, 0.08


@dataclass(frozen=True)
class Work:
    """An artifact as its agent has made it."""

    ref: ArtifactRef
    owner: str
    supersedes: str | None


@dataclass
class Agent:
    """One participant, with the works of its own."""

    owner: str
    artifacts: Artifacts
    chance: random.Random
    shared: list[bytes]
    works: dict[str, Work] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    newest: ArtifactRef | None = None

    async def work(self, turns: "asyncio.Queue[bool]") -> None:
        """Put one artifact a turn."""
        while await turns.get():
            await self._put(self._content())

    async def _put(self, content: bytes) -> None:
        before = self.newest if self.chance.random() < _GOES_ON else None
        times = 2 if self.chance.random() < _IS_SAID_TWICE else 1
        artifact_id = mint("art")
        puts = [
            self.artifacts.put(content, artifact_type="draft", trace=TRACE, artifact_id=artifact_id, supersedes=before)
            for _ in range(times)
        ]
        for put in await asyncio.gather(*puts):
            self.outcomes[put.outcome] += 1
            assert put.ref.sha256 == hashlib.sha256(content).hexdigest()
            self.works[artifact_id] = Work(put.ref, self.owner, before.artifact_id if before else None)
            self.newest = put.ref

    def _content(self) -> bytes:
        if self.chance.random() < _IS_SHARED:
            return self.chance.choice(self.shared)
        return _some_bytes(self.chance)


@dataclass
class Crowd:
    """Agents that share the turns they are given."""

    settings: FleetSettings
    agents: list[Agent]
    turns: "asyncio.Queue[bool]" = field(default_factory=asyncio.Queue)
    given: int = 0

    def keep_busy(self) -> None:
        """Whoever has put what it was at finds another one to put."""
        while self.turns.qsize() < len(self.agents):
            self.turns.put_nowait(True)
            self.given += 1

    @property
    def works(self) -> dict[str, Work]:
        """All that was made."""
        return {artifact_id: work for agent in self.agents for artifact_id, work in agent.works.items()}

    @property
    def outcomes(self) -> Counter[str]:
        """What became of the puts, as far as their callers were told."""
        return sum((agent.outcomes for agent in self.agents), Counter[str]())

    async def is_done(self, within_s: float) -> None:
        """Wait until every turn is taken, until nothing waits in a buffer any more; for as long as it gets on."""
        while left := self.left():
            await until(partial(self._has_fewer_than, left), within_s, f"fewer than {left} artifacts wait")

    def left(self) -> int:
        """How many are not put yet, or wait for storage, or were refused by it."""
        buffered = len(list(self.settings.data_dir.glob("buffer/*/*/art_*.json")))
        return self.given - len(self.works) + buffered

    def _has_fewer_than(self, left: int) -> bool:
        return self.left() < left


@asynccontextmanager
async def crowd_of(agents: int, settings: FleetSettings, seed: int) -> AsyncIterator[Crowd]:
    """Agents at work, each with connections of its own."""
    chance = random.Random(f"{seed} shared")
    shared = [_some_bytes(chance) for _ in range(_SHARED)]
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        crowd = Crowd(settings, [])
        for number in range(agents):
            bus = await stack.enter_async_context(connect(f"agent.writer{number}", settings=settings))
            artifacts = await stack.enter_async_context(open_artifacts(bus, settings))
            agent = Agent(bus.owner, artifacts, random.Random(f"{seed} {number}"), shared)
            crowd.agents.append(agent)
            group.create_task(agent.work(crowd.turns))
        yield crowd
        for _ in crowd.agents:
            crowd.turns.put_nowait(False)


def _some_bytes(chance: random.Random) -> bytes:
    """Mostly some kilobytes, now and then some megabytes."""
    exponent = chance.uniform(17, 22.3) if chance.random() < _IS_LARGE else chance.uniform(10, 17)
    return chance.randbytes(int(2**exponent))
