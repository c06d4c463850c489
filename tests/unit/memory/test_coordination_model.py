"""Locks and counters in any order of requests, repetitions, restarts and pauses: what always holds of them."""

import asyncio
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from bus_schema.swm import Lock
from memory.errors import LockNotHeld
from memory.swm.coordination import LockRequest
from memory.swm.sql_coordination import SqlCoordination
from memory.swm.tables import MIGRATIONS
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from tests.clocks import Clock

NAMES = st.sampled_from(["report", "plan"])
TICKETS = st.sampled_from(["t1", "t2", "t3", "t4"])
SECONDS = st.sampled_from([1, 29, 30, 31, 90])


class Coordinated(RuleBasedStateMachine):
    """The model: who holds which lock until when, all numbers that were given out, which additions were made."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = Clock()
        self.locks: dict[str, tuple[str, Lock]] = {}
        self.given: dict[str, list[Lock]] = {}
        self.added: dict[tuple[str, str], tuple[int, int]] = {}
        self.sums: dict[str, int] = {}
        self.database = Database(f"sqlite+aiosqlite:///{self.folder / 'swm.db'}", "swm")
        self.loop.run_until_complete(upgrade(self.database, MIGRATIONS))
        self.open()

    def open(self) -> None:
        self.store = SqlCoordination(self.database, self.clock)
        self.loop.run_until_complete(self.store.open())

    def holder(self, name: str) -> tuple[str, Lock] | None:
        held = self.locks.get(name)
        return held if held is not None and held[1].expires > self.clock() else None

    @rule(name=NAMES, ticket=TICKETS, seconds=SECONDS)
    def take(self, name: str, ticket: str, seconds: int) -> None:
        held = self.holder(name)
        request = LockRequest(name, f"agent.{ticket}.1", timedelta(seconds=seconds), ticket)
        found = self.loop.run_until_complete(self.store.take(request))
        if held is None:
            assert isinstance(found, Lock), "a lock that is free is given"
            earlier = self.given.setdefault(name, [])
            assert all(found.fencing > one.fencing and found.token != one.token for one in earlier), "numbers go up"
            assert found.expires == self.clock() + timedelta(seconds=seconds)
            earlier.append(found)
            self.locks[name] = ticket, found
        elif held[0] == ticket:
            assert found == held[1], "a request that is repeated gets the lock that it has"
        else:
            assert found == held[1].expires, "never two inside"

    @rule(name=NAMES, data=st.data(), seconds=SECONDS)
    def renew(self, name: str, data: st.DataObject, seconds: int) -> None:
        lock, held = self.any_lock(name, data), self.holder(name)
        work = self.store.renew(name, lock.token, timedelta(seconds=seconds))
        if held is None or held[1].token != lock.token:
            with pytest.raises(LockNotHeld):
                self.loop.run_until_complete(work)
            return
        renewed = self.loop.run_until_complete(work)
        assert (renewed.token, renewed.fencing) == (lock.token, lock.fencing)
        self.locks[name] = held[0], renewed

    @rule(name=NAMES, data=st.data(), times=st.integers(1, 2))
    def release(self, name: str, data: st.DataObject, times: int) -> None:
        lock, held = self.any_lock(name, data), self.holder(name)
        for _ in range(times):
            work = self.store.release(name, lock.token)
            if held is not None and held[1].token == lock.token:
                self.loop.run_until_complete(work)
                self.locks.pop(name, None)
            elif self.locks.get(name) is None and self.given.get(name, [None])[-1] == lock:
                # Released before, which may be said again; or never taken.
                self.loop.run_until_complete(work)
            else:
                with pytest.raises(LockNotHeld):
                    self.loop.run_until_complete(work)

    def any_lock(self, name: str, data: st.DataObject) -> Lock:
        never = Lock(token="0" * 32, fencing=1, expires=self.clock())
        return data.draw(st.sampled_from([*self.given.get(name, []), never]))

    @rule(name=NAMES, by=st.integers(-5, 5), operations=st.lists(TICKETS, min_size=1, max_size=4))
    def add(self, name: str, by: int, operations: list[str]) -> None:
        async def all_at_once() -> list[int]:
            return await asyncio.gather(*(self.store.add(name, by, each) for each in operations))

        for operation, value in zip(operations, self.loop.run_until_complete(all_at_once()), strict=True):
            if (name, operation) not in self.added:
                self.sums[name] = self.sums.get(name, 0) + by
                self.added[name, operation] = by, self.sums[name]
            assert value == self.added[name, operation][1], "an operation counts once, and is answered the same"

    @rule(seconds=SECONDS)
    def let_time_pass(self, seconds: int) -> None:
        self.clock.now += timedelta(seconds=seconds)

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.run_until_complete(self.database.dispose())
        self.open()

    @rule(name=NAMES)
    def look(self, name: str) -> None:
        info, held = self.loop.run_until_complete(self.store.lock_info(name)), self.holder(name)
        assert info.holder == (None if held is None else f"agent.{held[0]}.1")
        assert self.loop.run_until_complete(self.store.value(name)) == self.sums.get(name, 0)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.run_until_complete(self.database.dispose())
        self.loop.close()
        shutil.rmtree(self.folder)


class CoordinatedAtLength(Coordinated):
    pass


Coordinated.TestCase.settings = settings(max_examples=12, stateful_step_count=25)
CoordinatedAtLength.TestCase.settings = settings(max_examples=400, stateful_step_count=60)
TestCoordinated = Coordinated.TestCase
TestCoordinatedAtLength = pytest.mark.proof(CoordinatedAtLength.TestCase)
