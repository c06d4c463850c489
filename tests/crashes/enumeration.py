"""One story, told in one fixed order, cut short or held up at every moment of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.crashes.gates import Actor, Gate
from tests.crashes.memory_world import A_GOOD_STORE, AS_BUILT, UNTIL_QUIET, Design, MemoryWorld, Store
from tests.crashes.schedules import MAX_STEPS, Broken
from tests.crashes.storages import Storage
from tests.crashes.uploads import Story, Upload


@dataclass(slots=True)
class Lives:
    """The lives of one process after another; each but the last ends, or stalls, at a given moment.

    A life is to register what is staged, then to collect garbage after a day, again after the orphans' week. A process
    that stalls wakes after the next one has done all that.
    """

    story: Story
    ends_at: Sequence[int]
    design: Design = AS_BUILT
    store: Store = A_GOOD_STORE
    collections: int = len(UNTIL_QUIET)
    stalls: bool = False
    drops: bool = False
    ended: list[str] = field(default_factory=list)
    collected: int = 0
    busy: dict[tuple[Storage, str], Actor] = field(default_factory=dict)
    sleepers: list[Actor] = field(default_factory=list)

    def run(self) -> "Lives":
        """Raises Broken."""
        world = MemoryWorld(self.design, self.store)
        if self.drops:
            world.drop_what_is_committed()
        try:
            self._run(world)
            world.require_quiet()
            self._require_unbroken(world)
        finally:
            world.close()
        return self

    def _run(self, world: MemoryWorld) -> None:
        if self.story.ghost is not None:
            _haunt(world, self.story.ghost)
        for upload in self.story.uploads:
            world.stage(upload)
        storage, moment = world.start("1"), 0
        for _ in range(MAX_STEPS):
            world.loop.run_ready()
            self._require_unbroken(world)
            gate = next((gate for gate in world.gates.waiting if not gate.actor.naps), None)
            if gate is None:
                if not self._begin(world, storage):
                    return
            elif len(self.ended) < len(self.ends_at) and moment == self.ends_at[len(self.ended)]:
                self._end(world, gate)
                storage, moment = world.start(f"{len(self.ended) + 1}"), 0
            else:
                world.gates.let_on(gate)
                moment += 1
        raise Broken(f"ends at {self.ends_at}: it never ends")

    def _end(self, world: MemoryWorld, gate: Gate) -> None:
        self.ended.append(gate.moment)
        self.collected = 0
        world.broker.lose(gate.actor.process)
        if self.stalls:
            gate.actor.naps = 1
            self.sleepers.append(gate.actor)
        else:
            world.gates.crash(gate)

    def _begin(self, world: MemoryWorld, storage: Storage) -> bool:
        """Start the first thing there is to do; whether there is anything."""
        if world.broker.pending:
            delivery = world.broker.deliver(world.broker.pending[0], storage.process)
            world.gates.start("register", storage.process, storage.carry(delivery))
        elif turned_away := world.invariants.turned_away:
            world.stage(turned_away.pop().again())
        elif works := [(name, work) for name, work in world.works(storage).items() if self._is_free(storage, name)]:
            name, work = works[0]
            self.busy[storage, name] = world.gates.start(name, storage.process, work())
        elif self.collected < self.collections and not self._is_held_up(storage):
            world.clock.now += UNTIL_QUIET[self.collected]
            self.collected += 1
            self.busy[storage, "gc"] = world.gates.start("gc", storage.process, storage.collect())
        elif self.sleepers:
            self.sleepers.pop().naps = 0
            self.collected = 0
        else:
            return world.loop.let_time_pass()
        return True

    def _is_free(self, storage: Storage, name: str) -> bool:
        return (storage, name) not in self.busy or self.busy[storage, name].is_done

    def _is_held_up(self, storage: Storage) -> bool:
        """Whether it waits for a lock that a sleeper holds."""
        return any(not actor.is_done for (holder, _), actor in self.busy.items() if holder is storage)

    def _require_unbroken(self, world: MemoryWorld) -> None:
        if broken := world.invariants.broken + world.gates.mistakes:
            raise Broken("\n".join((f"ends at {self.ends_at}: {'; '.join(broken)}", *world.gates.trace)))


def _haunt(world: MemoryWorld, ghost: Upload) -> None:
    storage = world.start("0")
    world.stage(ghost)
    world.gates.start("register", storage.process, storage.carry(world.broker.deliver(ghost.message, storage.process)))
    world.loop.run_ready()
    while (gate := world.gates.waiting[0]).moment != "before commit":
        world.gates.let_on(gate)
        world.loop.run_ready()
    world.gates.crash(gate)
    world.loop.run_ready()
    world.broker.unsettled.clear()
    world.invariants.asked.clear()


Ending = Callable[[Sequence[int]], Lives]


def singles(life: Ending) -> Iterator[Lives]:
    """An end at every moment of the story."""
    at = 0
    while len((lives := life((at,)).run()).ended) == 1:
        yield lives
        at += 1


def pairs(life: Ending) -> Iterator[Lives]:
    """After each of those, a second one at every moment of what is left of the story then."""
    for first in singles(life):
        at = 0
        while len((lives := life((*first.ends_at, at)).run()).ended) == len(first.ends_at) + 1:
            yield lives
            at += 1
