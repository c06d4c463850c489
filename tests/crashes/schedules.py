"""A story told by a seed: who goes on, who dies, who sleeps, and what is given to whom meanwhile."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from tests.crashes.gates import Actor, Gate
from tests.crashes.memory_broker import Message
from tests.crashes.storages import Storage, Work, World
from tests.crashes.uploads import Story, Upload

MAX_STEPS = 5_000
# Past the time for which a pin and a staged file are safe.
_JUMP = timedelta(hours=26)
_AT_ONCE = 0.3
_SELDOM = 0.25
# While all others sleep.
_IN_SLEEP = 0.7
Move = Callable[[], None]


class Broken(AssertionError):
    """Storage has broken a promise; the trace tells how."""


@dataclass(slots=True)
class Told:
    """What a schedule was made of."""

    steps: int = 0
    jumps: int = 0
    collections: int = 0
    crashes: list[str] = field(default_factory=list)
    naps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Temper:
    """How a schedule treats its processes; each seed has its own."""

    crashes: int
    naps: int
    failures: int
    jumps: int
    collections: int
    audits: int
    restlessness: float
    persistence: float
    mischief: float

    @classmethod
    def of(cls, chance: random.Random) -> "Temper":
        """Up to three of each kind of trouble, from a scheduler that changes its mind always or seldom."""
        return cls(
            chance.choice((0, 1, 1, 2, 3)),
            chance.choice((0, 1, 1, 2, 3)),
            chance.choice((0, 0, 1, 2)),
            chance.choice((0, 1, 2)),
            chance.choice((0, 1, 2, 3)),
            chance.choice((0, 0, 1)),
            chance.choice((0.0, 0.03, _AT_ONCE)),
            chance.choice((0.0, 0.5, 0.9)),
            chance.choice((0.04, 0.12, 0.3)),
        )


class Schedule:
    """Chooses one move after another; whoever tells the story makes it, then lets everybody come to a gate."""

    def __init__(self, seed: int, world: World, stories: Sequence[Story]) -> None:
        self.seed = seed
        self.world = world
        self.told = Told()
        self._chance = random.Random(seed)
        self._temper = Temper.of(self._chance)
        story = self._chance.choice(stories)
        self._unstaged = list(story.uploads)
        self._ghost = story.ghost
        if self._ghost is not None:
            # What it left must be collected while others register the same bytes.
            self._temper.collections = max(1, self._temper.collections)
            self._temper.restlessness = _AT_ONCE
        self._lives = 0
        self.storages = [self._start("a"), self._start("b")]
        self._busy: dict[tuple[Storage, str], Actor] = {}
        self._last: Actor | None = None

    def next_move(self) -> Move | None:
        """What happens next; None where nothing can, unless time passes. Raises Broken."""
        self.require_unbroken()
        self.told.steps += 1
        if self.told.steps > MAX_STEPS:
            self.world.invariants.broken.append("it never ends")
            self.require_unbroken()
        if self._ghost is not None:
            return self._haunt(self._ghost)
        gates = [gate for gate in self.world.gates.waiting if not gate.actor.naps]
        for gate in self.world.gates.waiting:
            gate.actor.naps = max(0, gate.actor.naps - 1)
        own = [gate for gate in gates if gate.actor is self._last]
        if own and self._chance.random() < self._temper.persistence:
            return self._at(self._chance.choice(own))
        works = self._works()
        weather = self._weather()
        if weather and (
            self._chance.random() < self._temper.restlessness if gates or works else self._chance.random() < _IN_SLEEP
        ):
            return self._chance.choice(weather)
        if not gates and not works:
            return self._wake()
        at = self._chance.randrange(len(gates) + len(works))
        return self._at(gates[at]) if at < len(gates) else works[at - len(gates)]

    def require_unbroken(self) -> None:
        """Raises Broken."""
        if broken := self.world.invariants.broken + self.world.gates.mistakes:
            raise Broken("\n".join((f"seed {self.seed}: {'; '.join(broken)}", *self.world.gates.trace)))

    def _haunt(self, ghost: Upload) -> Move:
        """Long ago somebody published bytes, died before they were committed, and never came back."""
        world, storage = self.world, self.storages[0]
        if not world.gates.waiting:
            world.stage(ghost)
            return partial(self._deliver, ghost.message, storage)
        gate = world.gates.waiting[0]
        if gate.moment != "before commit":
            return partial(world.gates.let_on, gate)

        def vanish() -> None:
            self._kill(gate)
            world.broker.pending.clear()
            world.invariants.asked.clear()
            world.clock.now += _JUMP
            self._ghost = None

        return vanish

    def _at(self, gate: Gate) -> Move:
        self._last = gate.actor
        # To die where nothing has changed teaches little.
        mischief = self._temper.mischief * (_SELDOM if gate.is_of_reading else 1)
        if self._chance.random() < mischief:
            trouble = self._chance.choice((self._crash, self._nap, self._fail))
            if (move := trouble(gate)) is not None:
                return move
        return partial(self.world.gates.let_on, gate)

    def _crash(self, gate: Gate) -> Move | None:
        if not self._temper.crashes:
            return None
        self._temper.crashes -= 1
        self.told.crashes.append(gate.moment)

        return partial(self._kill, gate)

    def _kill(self, gate: Gate) -> None:
        self.world.gates.crash(gate)
        self.world.broker.lose(gate.actor.process)
        at = next(at for at, each in enumerate(self.storages) if each.process is gate.actor.process)
        self.storages[at] = self._start("ab"[at])

    def _nap(self, gate: Gate) -> Move | None:
        if not self._temper.naps:
            return None
        self._temper.naps -= 1
        self.told.naps.append(gate.moment)
        is_noticed = self._chance.choice((True, False))

        def nap() -> None:
            gate.actor.naps = self._chance.choice((10, 100, MAX_STEPS))
            self.world.gates.note(f"{gate.actor.process.name} {gate.actor.name} falls asleep {gate.moment}")
            if is_noticed:
                # The broker gives up on it, and gives what it was doing to another.
                self.world.broker.lose(gate.actor.process)

        return nap

    def _fail(self, gate: Gate) -> Move | None:
        if not self._temper.failures or gate.failure is None:
            return None
        self._temper.failures -= 1
        self.told.failures.append(gate.moment)
        return partial(self.world.gates.fail, gate)

    def _wake(self) -> Move | None:
        """Nobody else can do anything: those who sleep wake."""
        sleeping = {gate.actor for gate in self.world.gates.waiting}
        if not sleeping:
            return None

        def wake() -> None:
            for actor in sleeping:
                actor.naps = 0
            self.world.gates.note("all wake")

        return wake

    def _weather(self) -> list[Move]:
        """What comes by itself, sooner or later."""
        moves: list[Move] = [self._jump] if self._temper.jumps else []
        for storage in self.storages:
            if self._temper.collections and self._is_free(storage, "gc"):
                moves.append(partial(self._collect, storage))
            if self._temper.audits and self._is_free(storage, "audit"):
                moves.append(partial(self._audit, storage))
        return moves

    def _jump(self) -> None:
        self._temper.jumps -= 1
        self.told.jumps += 1
        self.world.clock.now += _JUMP
        self.world.gates.note(f"it is {self.world.clock.now:%d %b %H:%M}")

    def _collect(self, storage: Storage) -> None:
        self._temper.collections -= 1
        self.told.collections += 1
        self._begin(storage, "gc", storage.collect)

    def _audit(self, storage: Storage) -> None:
        self._temper.audits -= 1
        self._begin(storage, "audit", storage.audit)

    def _works(self) -> list[Move]:
        """What could be begun now."""
        moves: list[Move] = [partial(self._stage, each) for each in self._unstaged]
        turned_away = self.world.invariants.turned_away
        moves += [partial(self._stage_again, each) for each in turned_away]
        for storage in self.storages:
            moves += [partial(self._deliver, message, storage) for message in self.world.broker.pending]
            # Each kind of work once at a time, as in Service.
            moves += [
                partial(self._begin, storage, name, work)
                for name, work in self.world.works(storage).items()
                if self._is_free(storage, name)
            ]
        return moves

    def _stage(self, upload: Upload) -> None:
        self._unstaged.remove(upload)
        self.world.gates.note(f"{upload.artifact_id} is staged")
        self.world.stage(upload)

    def _stage_again(self, upload: Upload) -> None:
        self.world.invariants.turned_away.remove(upload)
        self.world.gates.note(f"{upload.artifact_id} is staged again")
        self.world.stage(upload.again())

    def _deliver(self, message: Message, storage: Storage) -> None:
        delivery = self.world.broker.deliver(message, storage.process)
        self.world.gates.start(f"register {message.properties.message_id}", storage.process, storage.carry(delivery))

    def _is_free(self, storage: Storage, name: str) -> bool:
        actor = self._busy.get((storage, name))
        return actor is None or actor.is_done

    def _begin(self, storage: Storage, name: str, work: Work) -> None:
        self._busy[storage, name] = self.world.gates.start(name, storage.process, work())

    def _start(self, name: str) -> Storage:
        self._lives += 1
        return self.world.start(f"{name}{self._lives}")
