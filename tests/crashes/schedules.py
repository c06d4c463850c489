"""A story told by a seed: who goes on, who dies, who sleeps, and what is given to whom meanwhile."""

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.crashes.gates import Actor, Gate
from tests.crashes.memory_broker import Message
from tests.crashes.world import AS_BUILT, Design, Storage, Upload, World, an_upload

_MAX_STEPS = 5_000
Move = Callable[[], None]


class Broken(AssertionError):
    """Storage has broken a promise; the trace tells how."""


@dataclass(slots=True)
class Told:
    """What a schedule was made of."""

    steps: int = 0
    crashes: list[str] = field(default_factory=list)
    naps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Temper:
    """How a schedule treats its processes; each seed has its own."""

    crashes: int
    naps: int
    failures: int
    persistence: float
    mischief: float

    @classmethod
    def of(cls, chance: random.Random) -> "Temper":
        """Up to three of each kind of trouble, from a scheduler that changes its mind always or seldom."""
        return cls(
            chance.choice((0, 1, 1, 2, 3)),
            chance.choice((0, 1, 1, 2, 3)),
            chance.choice((0, 0, 1, 2)),
            chance.choice((0.0, 0.5, 0.9)),
            chance.choice((0.02, 0.08, 0.2)),
        )


_A = an_upload("art_a", "agent.researcher.1", "msg_a", "a")
STORIES: tuple[tuple[Upload, ...], ...] = (
    # Two agents have made the same bytes.
    (_A, an_upload("art_b", "agent.critic.1", "msg_b", "b")),
    # An agent that heard no answer has uploaded its artifact anew, or registers the same upload once more.
    (_A, an_upload("art_a", "agent.researcher.2", "msg_c", "c")),
    (_A, an_upload("art_a", "agent.researcher.1", "msg_d", "a")),
)
ALONE = (_A,)


class Schedule:
    """One run of one story."""

    def __init__(self, seed: int, design: Design = AS_BUILT) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.temper = Temper.of(self.chance)
        self.world = World(design)
        self.told = Told()
        self._unstaged = list(self.chance.choice(STORIES))
        self._lives = 0
        self._storages = [self._start("a"), self._start("b")]
        self._busy: dict[tuple[Storage, str], Actor] = {}
        self._last: Actor | None = None

    def run(self) -> Told:
        """Tell it to its end. Raises Broken."""
        try:
            return self._run()
        finally:
            self.world.close()

    def _run(self) -> Told:
        while move := self._next_move():
            move()
            self.world.loop.run_ready()
            self.told.steps += 1
            self._require(self.told.steps < _MAX_STEPS, "it never ends")
            self._require(not self.world.invariants.broken, *self.world.invariants.broken)
        self.world.invariants.require_quiet()
        self._require(not self.world.invariants.broken, *self.world.invariants.broken)
        return self.told

    def _next_move(self) -> Move | None:
        gates = [gate for gate in self.world.gates.waiting if not gate.actor.naps]
        for gate in self.world.gates.waiting:
            gate.actor.naps = max(0, gate.actor.naps - 1)
        own = [gate for gate in gates if gate.actor is self._last]
        if own and self.chance.random() < self.temper.persistence:
            return self._at(self.chance.choice(own))
        moves = self._works()
        at = self.chance.randrange(len(gates) + len(moves)) if gates or moves else None
        if at is None:
            return self._wake()
        return self._at(gates[at]) if at < len(gates) else moves[at - len(gates)]

    def _at(self, gate: Gate) -> Move:
        self._last = gate.actor
        if self.chance.random() < self.temper.mischief:
            trouble = self.chance.choice((self._crash, self._nap, self._fail))
            if (move := trouble(gate)) is not None:
                return move
        return lambda: self.world.gates.let_on(gate)

    def _crash(self, gate: Gate) -> Move | None:
        if not self.temper.crashes:
            return None
        self.temper.crashes -= 1
        self.told.crashes.append(gate.moment)

        def crash() -> None:
            self.world.gates.crash(gate)
            self.world.broker.lose(gate.actor.process)
            at = next(i for i, each in enumerate(self._storages) if each.process is gate.actor.process)
            self._storages[at] = self._start("ab"[at])

        return crash

    def _nap(self, gate: Gate) -> Move | None:
        if not self.temper.naps:
            return None
        self.temper.naps -= 1
        self.told.naps.append(gate.moment)

        def nap() -> None:
            gate.actor.naps = self.chance.choice((10, 100, _MAX_STEPS))
            self.world.gates.note(f"{gate.actor.process.name} {gate.actor.name} falls asleep {gate.moment}")
            # The broker gives up on it, and gives what it was doing to another.
            self.world.broker.lose(gate.actor.process)

        return nap

    def _fail(self, gate: Gate) -> Move | None:
        if not self.temper.failures or gate.failure is None:
            return None
        self.temper.failures -= 1
        self.told.failures.append(gate.moment)
        return lambda: self.world.gates.fail(gate)

    def _wake(self) -> Move | None:
        """Nobody else can do anything: those who sleep wake, those who wait for a time see it come."""
        sleeping = {gate.actor for gate in self.world.gates.waiting}
        if not sleeping:
            return (lambda: None) if self.world.loop.let_time_pass() else None

        def wake() -> None:
            for actor in sleeping:
                actor.naps = 0
            self.world.gates.note("all wake")

        return wake

    def _works(self) -> list[Move]:
        """What could be begun now."""
        world = self.world
        moves: list[Move] = [partial(self._stage, each) for each in self._unstaged]
        for storage in self._storages:
            moves += [partial(self._deliver, message, storage) for message in world.broker.waiting]
            if world.database.committed.outbox:
                moves += self._begun(storage, "relay", storage.relay)
            if world.database.committed.spent:
                moves += self._begun(storage, "clean", storage.clean)
        return moves

    def _stage(self, upload: Upload) -> None:
        self._unstaged.remove(upload)
        self.world.gates.note(f"{upload.artifact_id} is staged")
        self.world.stage(upload)

    def _deliver(self, message: Message, storage: Storage) -> None:
        delivery = self.world.broker.deliver(message, storage.process)
        self.world.gates.start(f"register {message.properties.message_id}", storage.process, storage.carry(delivery))

    def _begun(self, storage: Storage, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> list[Move]:
        """Once at a time in each process."""
        actor = self._busy.get((storage, name))
        if actor is not None and not actor.is_done:
            return []

        def begin() -> None:
            self._busy[storage, name] = self.world.gates.start(name, storage.process, work())

        return [begin]

    def _start(self, name: str) -> Storage:
        self._lives += 1
        return self.world.start(f"{name}{self._lives}")

    def _require(self, holds: bool, *what: str) -> None:
        if not holds:
            raise Broken("\n".join((f"seed {self.seed}: {'; '.join(what)}", *self.world.gates.trace)))
