"""Every effect passes a gate before and after it; there a process goes on, stalls, meets an error, or dies."""

from asyncio import AbstractEventLoop, Event, Future, Task, sleep, timeout
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mindbus.errors import BusUnavailable, TemporaryFailure

T = TypeVar("T")
_LONG_S = 0.25
_FOR_EVER_S = 60.0
_READINGS = frozenset({"select", "head", "get", "list"})
EXPECTED = (OSError, TemporaryFailure, BusUnavailable)


class SimulatedCrash(BaseException):
    """Nothing may catch this: the process is gone."""


@dataclass(eq=False, slots=True)
class Process:
    """One life of a process: with it dies all that it has not written down."""

    name: str
    is_dead: bool = False
    actors: list["Actor"] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Actor:
    """One thing that a process is doing, such as a delivery."""

    name: str
    process: Process
    task: "Task[None] | None" = None
    naps: int = 0
    awaits_another: bool = False
    is_hit: bool = False

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left for it to do."""
        return self.task is not None and self.task.done()


@dataclass(eq=False, slots=True)
class Gate:
    """Somebody waits here; `failure` is the error that it may meet, as if the effect had brought it about."""

    actor: Actor
    moment: str
    passed: "Future[None]"
    failure: Callable[[], Exception] | None

    @property
    def is_of_reading(self) -> bool:
        """Whether nothing changes by what happens here."""
        return self.moment.split(" ", 1)[1] in _READINGS


_actor: "ContextVar[Actor]" = ContextVar("who acts")


class Gates:
    """Where everybody waits who is about to have an effect, or just had one."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        look: Callable[[], None],
        look_closely: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.loop, self.look = loop, look
        self._look_closely = look_closely
        self.changed = Event()
        self.waiting: list[Gate] = []
        self.trace: list[str] = []
        self.mistakes: list[str] = []
        self._processes: list[Process] = []
        self._actors: list[Actor] = []

    def start(self, name: str, process: Process, work: Coroutine[Any, Any, None]) -> Actor:
        """Let a process do something."""
        actor = Actor(name, process)
        actor.task = self.loop.create_task(self._as(actor, work))
        actor.task.add_done_callback(lambda _task: self.changed.set())
        self._actors.append(actor)
        process.actors.append(actor)
        if process not in self._processes:
            self._processes.append(process)
        return actor

    async def effect(self, name: str, act: Callable[[], T], failure: Callable[[], Exception] | None = None) -> T:
        """Have an effect that happens at once or not at all; if it may have changed the world, somebody looks at it."""
        await self.stop_at(f"before {name}", failure)
        result = act()
        if name not in _READINGS:
            self.look()
        await self.stop_at(f"after {name}", failure)
        return result

    async def real_effect(
        self, name: str, act: Callable[[], Awaitable[T]], failure: Callable[[], Exception] | None = None
    ) -> T:
        """The same where the effect is real, which takes its time."""
        await self.stop_at(f"before {name}", failure)
        result = await act()
        if name not in _READINGS:
            await self.look_closely()
        await self.stop_at(f"after {name}", failure)
        return result

    async def look_closely(self) -> None:
        """Somebody looks at a real world, which takes its time."""
        if self._look_closely is not None:
            await self._look_closely()

    async def stop_at(self, moment: str, failure: Callable[[], Exception] | None = None) -> None:
        """Wait to be let on. Raises SimulatedCrash in a dead process, and whatever failure was chosen."""
        actor = _actor.get()
        if actor.process.is_dead:
            raise SimulatedCrash
        actor.awaits_another = False
        gate = Gate(actor, moment, self.loop.create_future(), failure)
        self.waiting.append(gate)
        self.changed.set()
        await gate.passed

    @property
    def is_still(self) -> bool:
        """Whether everybody waits at a gate, or for somebody who does."""
        self._actors = [actor for actor in self._actors if not actor.is_done]
        waiting = {gate.actor for gate in self.waiting}
        return all(actor in waiting or actor.awaits_another for actor in self._actors)

    async def settle(self) -> None:
        """Let everybody come to a gate; who comes to none for so long waits for another."""
        for _ in range(3):
            await sleep(0)
        while not self.is_still:
            self.changed.clear()
            try:
                async with timeout(_LONG_S):
                    await self.changed.wait()
            except TimeoutError:
                for actor in self._actors:
                    actor.awaits_another = True

    async def wait_for_somebody(self) -> bool:
        """Until somebody comes to a gate after all; whether there is anybody. Raises TimeoutError."""
        async with timeout(_FOR_EVER_S):
            while not self.waiting:
                self._actors = [actor for actor in self._actors if not actor.is_done]
                if not self._actors:
                    return False
                self.changed.clear()
                await self.changed.wait()
        return True

    def let_on(self, gate: Gate) -> None:
        """It goes on."""
        self._leave(gate, "")
        gate.passed.set_result(None)

    def fail(self, gate: Gate) -> None:
        """It meets its error: the effect seems to have failed, whether or not it has happened."""
        assert gate.failure is not None
        self._leave(gate, " FAILS")
        gate.passed.set_exception(gate.failure())

    def crash(self, gate: Gate) -> None:
        """Its whole process dies on the spot."""
        self._leave(gate, " CRASHES")
        gate.actor.is_hit = True
        self.kill(gate.actor.process)
        gate.passed.set_exception(SimulatedCrash())

    def kill(self, process: Process) -> None:
        """Nothing that the process was doing goes on."""
        process.is_dead = True
        for gate in [gate for gate in self.waiting if gate.actor.process is process]:
            self.waiting.remove(gate)
            gate.passed.set_exception(SimulatedCrash())
            gate.actor.is_hit = True
        for actor in process.actors:
            # Whoever waits for something else than a gate, such as a lock, dies as well.
            if not actor.is_hit and actor.task is not None:
                self.loop.call_soon(actor.task.cancel)

    def kill_all(self) -> None:
        """Nobody goes on."""
        for process in self._processes:
            self.kill(process)

    def note(self, what: str) -> None:
        """Write into the trace what somebody else does."""
        self.trace.append(what)

    async def _as(self, actor: Actor, work: Coroutine[Any, Any, None]) -> None:
        _actor.set(actor)
        try:
            await work
        except SimulatedCrash:
            return
        except EXPECTED as trouble:
            # As in Service: what fails is logged, and begun again.
            self.note(f"{actor.process.name} {actor.name} ends with {trouble!r}")
        except Exception as mistake:  # noqa: BLE001  # whoever tells the story reports it
            self.mistakes.append(f"{actor.name}: {mistake!r}")

    def _leave(self, gate: Gate, how: str) -> None:
        self.waiting.remove(gate)
        self.trace.append(f"{gate.actor.process.name} {gate.actor.name}: {gate.moment}{how}")


def acting() -> Actor:
    """Who does this."""
    return _actor.get()


class OpenGates(Gates):
    """Nobody waits at any."""

    async def stop_at(self, moment: str, failure: Callable[[], Exception] | None = None) -> None:
        """As in Gates, but that everybody goes on."""
        await sleep(0)
