"""One story, told in one fixed order, cut short at every moment of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.crashes.memory_world import AS_BUILT, Design, MemoryWorld
from tests.crashes.schedules import Broken
from tests.crashes.storages import Storage
from tests.crashes.uploads import Upload


@dataclass(slots=True)
class Lives:
    """The lives of one process after another, each of which ends at a given moment; the last one sees it through."""

    uploads: Sequence[Upload]
    crash_at: Sequence[int]
    design: Design = AS_BUILT
    crashed: list[str] = field(default_factory=list)

    def run(self) -> "Lives":
        """Raises Broken."""
        world = MemoryWorld(self.design)
        try:
            return self._run(world)
        finally:
            world.close()

    def _run(self, world: MemoryWorld) -> "Lives":
        for upload in self.uploads:
            world.stage(upload)
        storage = world.start("1")
        moment = 0
        while True:
            world.loop.run_ready()
            self._require_unbroken(world)
            gate = next(iter(world.gates.waiting), None)
            if gate is None:
                if not self._begin(world, storage):
                    break
                continue
            if len(self.crashed) < len(self.crash_at) and moment == self.crash_at[len(self.crashed)]:
                self.crashed.append(gate.moment)
                world.gates.crash(gate)
                world.broker.lose(storage.process)
                storage, moment = world.start(f"{len(self.crashed) + 1}"), 0
            else:
                world.gates.let_on(gate)
                moment += 1
        world.require_quiet()
        self._require_unbroken(world)
        return self

    def _begin(self, world: MemoryWorld, storage: Storage) -> bool:
        """Start the first thing there is to do; whether there is anything."""
        if world.broker.waiting:
            delivery = world.broker.deliver(world.broker.waiting[0], storage.process)
            world.gates.start("register", storage.process, storage.carry(delivery))
            return True
        for name, work in world.works(storage).items():
            world.gates.start(name, storage.process, work())
            return True
        return world.loop.let_time_pass()

    def _require_unbroken(self, world: MemoryWorld) -> None:
        if world.invariants.broken:
            what = f"crashes at {self.crash_at}: {'; '.join(world.invariants.broken)}"
            raise Broken("\n".join((what, *world.gates.trace)))


def single_crashes(uploads: Sequence[Upload], design: Design = AS_BUILT) -> Iterator[Lives]:
    """A crash at every moment of the story."""
    at = 0
    while len((lives := Lives(uploads, (at,), design).run()).crashed) == 1:
        yield lives
        at += 1


def crash_pairs(uploads: Sequence[Upload], design: Design = AS_BUILT) -> Iterator[Lives]:
    """After each of those, a second one at every moment of what is left of the story then."""
    for first in single_crashes(uploads, design):
        at = 0
        while len((lives := Lives(uploads, (*first.crash_at, at), design).run()).crashed) == 2:
            yield lives
            at += 1
