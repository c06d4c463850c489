"""Simulated users: their clocks, from the status of the simulation, and those who have spoken."""

import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from agents.people_directory import PeopleDirectory
from agents.present import SimulatedClock
from agents.sim.scenarios import SimLibrary, usable_teams
from bus_schema.agent_data import GetAgentData, PutAgentData
from bus_schema.sim import GetSimStatus, SimState
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.sdk.requests import items_of, request_in_scope

_STATUS_WITHIN_S = 2.0
_STATUS_FOR = timedelta(seconds=2)
_NONE_FOR = timedelta(seconds=30)
# People of a team may be real ones later.
_LONGEST = timedelta(days=1)


class SimulatedTime:
    """Clocks of the people of the simulation that runs, or ran last within a day; others are on real time."""

    def __init__(self, bus: Client, clock: Callable[[], datetime], sim_dir: Path | None) -> None:
        self._bus, self._clock = bus, clock
        self._teams_of: dict[str, set[str]] = defaultdict(set)
        for name, team in usable_teams(SimLibrary(sim_dir)).items():
            for person in team.people:
                self._teams_of[person.user_id].add(name)
        self._status, self._valid_for = SimState(), _STATUS_FOR
        self._asked_at: datetime | None = None

    async def of(self, user_id: str, zone: str) -> SimulatedClock | None:
        """The clock of a user, None for one on real time."""
        teams = self._teams_of.get(user_id)
        if not teams:
            return None
        status = await self._current()
        if status.profiles not in teams or status.started_at is None or status.speed is None:
            return None
        if self._clock() - status.started_at > _LONGEST:
            return None
        return SimulatedClock.of(status.started_at, status.speed, status.starts_at, zone)

    async def _current(self) -> SimState:
        now = self._clock()
        if self._asked_at is None or now - self._asked_at > self._valid_for:
            try:
                self._status = await self._bus.request(GetSimStatus(), timeout_s=_STATUS_WITHIN_S)
                self._valid_for = _STATUS_FOR
            except (ReplyError, BusUnavailable):
                self._valid_for = _NONE_FOR
            self._asked_at = now
        return self._status


_NAMESPACE = "heard"
_TTL_S = 30.0


class HeardUsers:
    """Simulated users who have spoken, kept by storage for one agent; a user's entry goes with the user."""

    def __init__(self, bus: Client, agent: str, roster: PeopleDirectory) -> None:
        self._bus, self._agent, self._roster = bus, agent, roster
        self._heard: frozenset[str] = frozenset()
        self._read_at: float | None = None

    @property
    def known(self) -> frozenset[str]:
        """Those read last."""
        return self._heard

    async def including(self, user_id: str) -> frozenset[str]:
        """All of them, with this one if they are simulated."""
        now = time.monotonic()
        if self._read_at is None or now >= self._read_at + _TTL_S:
            query = GetAgentData(agent=self._agent, namespace=_NAMESPACE)
            self._heard = frozenset([datum.key async for datum in items_of(self._bus, query)])
            self._read_at = now
        if self._roster.is_simulated(user_id) and user_id not in self._heard:
            await self.add(user_id)
        return self._heard

    async def add(self, user_id: str) -> None:
        """Record that somebody has spoken."""
        await request_in_scope(
            self._bus, PutAgentData(agent=self._agent, namespace=_NAMESPACE, key=user_id, value=True)
        )
        self._heard |= {user_id}
