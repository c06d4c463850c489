"""Playing of a simulation, with its progress."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from agents.sim.generator import SimMessage, TextsExhausted
from bus_schema.dialogue import EndDialogue, Invoke, conversation_trace
from bus_schema.ids import derived
from bus_schema.messages import Command
from bus_schema.sim import SimCounts
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.tasks import end

_ANSWER_WITHIN_S = 60.0
_TRIES = 20
_SILENCE = timedelta(minutes=30)
# However fast the simulation is, nobody falls silent between two breaths.
_SHORTEST_SILENCE_S = 2.0


@dataclass
class SimProgress:
    """Messages by their numbers from 1 on: all up to `done` have been seen to, some beyond it as well."""

    begun: int = 0
    done: int = 0
    beyond: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)

    def settle(self, number: int, *, is_answered: bool) -> None:
        if not is_answered:
            self.failed.add(number)
        self.beyond.add(number)
        while self.done + 1 in self.beyond:
            self.done += 1
            self.beyond.remove(self.done)

    def counts(self, sim_id: str) -> SimCounts:
        settled = self.done + len(self.beyond)
        return SimCounts(sim_id=sim_id, sent=self.begun, answered=settled - len(self.failed), failed=len(self.failed))


class SimPlayer:
    """Runs until it has said all, or is stopped; what was said is answered to its end."""

    def __init__(
        self, bus: Client, sim_id: str, messages: Iterable[SimMessage], speed: float, progress: SimProgress
    ) -> None:
        self._bus, self._sim_id, self._messages, self._speed = bus, sim_id, messages, speed
        self.progress = progress
        self._stopping = asyncio.Event()
        self._people: dict[str, asyncio.Queue[SimMessage | None]] = defaultdict(asyncio.Queue)
        self._speaking: dict[str, asyncio.Task[None]] = {}

    def stop(self) -> None:
        """Say nothing more."""
        self._stopping.set()

    async def run(self, saved: Callable[[], Awaitable[None]]) -> str:
        """Play to the end and return the reason of it; `saved` is awaited whenever there is progress."""
        try:
            reason = "it was stopped" if await self._say_all(saved) else "all was said"
        except TextsExhausted as error:
            reason = str(error)
        for queue in self._people.values():
            queue.put_nowait(None)
        await asyncio.gather(*self._speaking.values())
        await saved()
        return reason

    async def abandon(self) -> None:
        """Leave it where it is; whoever takes it up again repeats what was not answered."""
        await end(*self._speaking.values())

    async def _say_all(self, saved: Callable[[], Awaitable[None]]) -> bool:
        loop = asyncio.get_running_loop()
        next_at = saved_at = loop.time()
        for message in self._messages:
            next_at += message.after.total_seconds() / self._speed
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_at):
                    await self._stopping.wait()
            if self._stopping.is_set():
                return True
            self._begin(message)
            if loop.time() - saved_at > 1:
                saved_at = loop.time()
                await saved()
        return False

    def _begin(self, message: SimMessage) -> None:
        self.progress.begun = max(self.progress.begun, message.number)
        self._people[message.user_id].put_nowait(message)
        if message.user_id not in self._speaking:
            speaking = self._speak(message.user_id, self._people[message.user_id])
            self._speaking[message.user_id] = asyncio.create_task(speaking, name=f"{message.user_id} speaks")

    async def _speak(self, user_id: str, queue: "asyncio.Queue[SimMessage | None]") -> None:
        """One after the other, as a person does; after a long silence, or at the end, the talk is over."""
        silence_s = max(_SHORTEST_SILENCE_S, _SILENCE.total_seconds() / self._speed)
        is_talking = False
        while True:
            try:
                async with asyncio.timeout(silence_s if is_talking else None):
                    message = await queue.get()
            except TimeoutError:
                is_talking = not await self._end(user_id)
                continue
            if message is None:
                break
            await self._say(message)
            is_talking = True
        if is_talking:
            await self._end(user_id)

    async def _say(self, message: SimMessage) -> None:
        command = Invoke(
            user_id=message.user_id, message=message.text, message_id=f"msg_{derived(self._sim_id, message.number)}"
        )
        self.progress.settle(message.number, is_answered=await self._request(command, message.user_id))

    async def _end(self, user_id: str) -> bool:
        return await self._request(EndDialogue(user_id=user_id, reason="timeout"), user_id)

    async def _request(self, command: Command[Any], user_id: str) -> bool:
        """Send a command until it is answered, under one message id so that it is done once; True on success."""
        trace = conversation_trace(user_id)
        for _ in range(_TRIES):
            try:
                await self._bus.request(command, timeout_s=_ANSWER_WITHIN_S, trace=trace)
            except BusUnavailable as error:
                logger().warning("simulation waits for the bus", reason=str(error))
                await asyncio.sleep(1)
            except ReplyError as error:
                logger().warning("simulation got no answer", user_id=user_id, reason=str(error))
                if not error.retryable:
                    return False
            else:
                return True
        return False
