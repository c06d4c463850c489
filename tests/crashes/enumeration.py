"""One story, told in one fixed order, cut short at every moment of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.crashes.schedules import Broken
from tests.crashes.world import AS_BUILT, Design, Storage, Upload, World


@dataclass(slots=True)
class Lives:
    """The lives of one process after another, each of which ends at a given moment; the last one sees it through."""

    uploads: Sequence[Upload]
    crash_at: Sequence[int]
    design: Design = AS_BUILT
    crashed: list[str] = field(default_factory=list)

    def run(self) -> "Lives":
        """Raises Broken."""
        world = World(self.design)
        try:
            return self._run(world)
        finally:
            world.close()

    def _run(self, world: World) -> "Lives":
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
        world.invariants.require_quiet()
        self._require_unbroken(world)
        return self

    def _begin(self, world: World, storage: Storage) -> bool:
        """Start what there is to do next; whether there is anything."""
        if world.broker.waiting:
            message = world.broker.waiting[0]
            delivery = world.broker.deliver(message, storage.process)
            world.gates.start("register", storage.process, storage.carry(delivery))
        elif world.database.committed.outbox:
            world.gates.start("relay", storage.process, storage.relay())
        elif world.database.committed.spent:
            world.gates.start("clean", storage.process, storage.clean())
        else:
            return world.loop.let_time_pass()
        return True

    def _require_unbroken(self, world: World) -> None:
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
