"""A model of load: what an operation costs in each process, simulated with others on the cores of a machine.

A process serves one piece of work at a time, the broker as many as there are cores; pieces wait for their process in
the order in which they come. Processes that have work share the cores alike, as an operating system has them do. An
operation is a chain of so many pieces as it sends messages; what follows its answer takes its share of the cores, too.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median

from pydantic import BaseModel

BROKER = "broker"
# Processes that do less than this of the work are counted with the others.
_LEAST_SHARE = 0.02
# What happens at first, before the queues have filled, does not count.
_WARM_UP_SHARE = 0.2


class Cost(BaseModel):
    """Of one operation: seconds of CPU by process, those spent once all is answered, and messages sent."""

    cpu_s: dict[str, float]
    later_cpu_s: dict[str, float] = {}
    messages: float = 1.0

    @property
    def total_cpu_s(self) -> float:
        return sum(self.cpu_s.values()) + sum(self.later_cpu_s.values())

    def pieces(self) -> list[tuple[str, float]]:
        """Its work as a chain: processes in turn, each as often as the number of messages says."""
        whole = sum(self.cpu_s.values())
        large = {name: spent for name, spent in self.cpu_s.items() if spent >= _LEAST_SHARE * whole}
        scale = whole / sum(large.values())
        rounds = max(1, round(self.messages / len(large)))
        return [(name, spent * scale / rounds) for _ in range(rounds) for name, spent in large.items()]


class CostCurve(BaseModel):
    """Costs of one kind of operation by how many of it are under way at once.

    Whatever is written together is paid once for all of them, so that each costs a + b / n; a and b are of the fewest
    and the most that were measured.
    """

    among: dict[int, Cost]

    def at(self, under_way: int) -> Cost:
        few, many = min(self.among), max(self.among)
        if few == many:
            return self.among[few]
        share = (1 / under_way - 1 / many) / (1 / few - 1 / many)

        def between(fewest: dict[str, float], most: dict[str, float]) -> dict[str, float]:
            # A process that had too little to do to be counted among few costs what it costs among many.
            both = ((name, fewest.get(name, at_most), at_most) for name, at_most in most.items())
            return {name: max(at_most + share * (at_fewest - at_most), 0.0) for name, at_fewest, at_most in both}

        one, other = self.among[few], self.among[many]
        return Cost(
            cpu_s=between(one.cpu_s, other.cpu_s),
            later_cpu_s=other.later_cpu_s,
            messages=other.messages + share * (one.messages - other.messages),
        )


@dataclass(frozen=True)
class Load:
    """Users who do one thing after another, for ever, and pause for `think_s` after each; or so many a second who go.

    A user who says eight things, starts a run, and says something again has `("answer",) * 8 + ("run",)`.
    """

    kinds: tuple[str, ...]
    users: int = 0
    think_s: float = 0.0
    per_s: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Of one kind: operations a second, seconds that one takes."""

    per_s: float
    p50_s: float


@dataclass
class _Server:
    """One process: at most one piece of work at a time."""

    waiting: deque[tuple[float, Callable[[], None]]] = field(default_factory=deque)
    free: int = 1


class SharedCores:
    """Cores that all pieces at work share alike, none of them having more than one.

    Each piece gets as much as any other, so one clock of work serves all: a piece is done when that clock has gone on
    by its size.
    """

    def __init__(self, cores: int) -> None:
        self._cores, self._work = cores, 0.0
        self._at_work: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def begin(self, seconds: float, then: Callable[[], None]) -> None:
        """Give a piece its share from now on."""
        heapq.heappush(self._at_work, (self._work + seconds, next(self._numbers), then))

    @property
    def next_end_s(self) -> float:
        """Time until the first of the pieces is done."""
        return (self._at_work[0][0] - self._work) / self._rate if self._at_work else float("inf")

    def pass_time(self, seconds: float) -> None:
        """Let them work for so long."""
        self._work += seconds * self._rate

    def end_first(self) -> Callable[[], None]:
        """Take out the piece that is done; returns what follows it."""
        self._work, _, then = heapq.heappop(self._at_work)
        return then

    @property
    def _rate(self) -> float:
        return min(1.0, self._cores / max(1, len(self._at_work)))


class Machine:
    """Simulated time, a number of cores, and a server for each process."""

    def __init__(self, costs: Mapping[str, CostCurve], cores: int, seed: int) -> None:
        self._cores, self._chance = SharedCores(cores), random.Random(seed)
        self._costs, self._under_way = costs, dict.fromkeys(costs, 0)
        self._pieces: dict[tuple[str, int], list[tuple[str, float]]] = {}
        names = {name for curve in costs.values() for cost in curve.among.values() for name in cost.cpu_s}
        self._servers = {name: _Server(free=cores if name == BROKER else 1) for name in names}
        self._later = {
            name: _Server() for curve in costs.values() for cost in curve.among.values() for name in cost.later_cpu_s
        }
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers, self._now = count(), 0.0
        self._took: dict[str, list[tuple[float, float]]] = {}

    def run(self, loads: Sequence[Load], seconds: float) -> dict[str, Outcome]:
        """Outcome of each kind."""
        for load in loads:
            self._took |= {kind: [] for kind in load.kinds}
            for each in range(load.users):
                # Not all of them do the same thing first.
                first = each * len(load.kinds) // load.users
                self._at(self._chance.random(), lambda load=load, first=first: self._user(load, first))  # type: ignore[misc]
            if load.per_s:
                self._at(self._chance.expovariate(load.per_s), lambda load=load: self._arrival(load))  # type: ignore[misc]
        while self._now <= seconds:
            self._step()
        return {kind: _outcome(took, seconds) for kind, took in self._took.items()}

    def _step(self) -> None:
        """Go on to whatever comes next."""
        event_s = self._events[0][0] - self._now if self._events else float("inf")
        end_s = self._cores.next_end_s
        passed_s = min(event_s, end_s)
        self._now += passed_s
        if end_s < event_s:
            then = self._cores.end_first()
        else:
            self._cores.pass_time(passed_s)
            _, _, then = heapq.heappop(self._events)
        then()

    def _user(self, load: Load, first: int = 0) -> None:
        self._do(load, first, lambda: self._user(load))

    def _arrival(self, load: Load) -> None:
        self._do(load, 0, lambda: None)
        self._at(self._chance.expovariate(load.per_s), lambda: self._arrival(load))

    def _do(self, load: Load, number: int, then: Callable[[], None]) -> None:
        """What a user does from there on, one thing after another."""
        if number == len(load.kinds):
            then()
            return
        self._begin(load.kinds[number], lambda: self._at(load.think_s, lambda: self._do(load, number + 1, then)))

    def _begin(self, kind: str, then: Callable[[], None]) -> None:
        self._under_way[kind] += 1
        began, pieces = self._now, self._pieces_of(kind, self._under_way[kind])

        def go_on(number: int) -> None:
            if number == len(pieces):
                self._under_way[kind] -= 1
                self._took[kind].append((self._now, self._now - began))
                self._follow(kind)
                then()
                return
            name, mean = pieces[number]
            self._serve(self._servers[name], self._chance.expovariate(1 / mean), lambda: go_on(number + 1))

        go_on(0)

    def _pieces_of(self, kind: str, under_way: int) -> list[tuple[str, float]]:
        key = kind, under_way
        if key not in self._pieces:
            self._pieces[key] = self._costs[kind].at(under_way).pieces()
        return self._pieces[key]

    def _follow(self, kind: str) -> None:
        """Begin what is left to do of an operation that has been answered, by whom nobody waits for."""
        for name, mean in self._costs[kind].at(max(self._costs[kind].among)).later_cpu_s.items():
            self._serve(self._later[name], self._chance.expovariate(1 / mean), lambda: None)

    def _serve(self, server: _Server, seconds: float, then: Callable[[], None]) -> None:
        if not server.free:
            server.waiting.append((seconds, then))
            return
        server.free -= 1
        self._cores.begin(seconds, lambda: self._done(server, then))

    def _done(self, server: _Server, then: Callable[[], None]) -> None:
        server.free += 1
        if server.waiting:
            self._serve(server, *server.waiting.popleft())
        then()

    def _at(self, after_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + after_s, next(self._numbers), act))


def _outcome(took: Sequence[tuple[float, float]], seconds: float) -> Outcome:
    began = seconds * _WARM_UP_SHARE
    counted = [latency for ended, latency in took if ended >= began]
    return Outcome(len(counted) / (seconds - began), median(counted) if counted else float("inf"))


def servers_for(per_s: Mapping[str, float], costs: Mapping[str, Cost], busy_share: float) -> dict[str, float]:
    """Cores that each process needs for so many operations a second of each kind, none of them busier than said."""
    needed: dict[str, float] = {}
    for kind, rate in per_s.items():
        for name, spent in (*costs[kind].cpu_s.items(), *costs[kind].later_cpu_s.items()):
            needed[name] = needed.get(name, 0.0) + rate * spent / busy_share
    return needed
