"""What the SDK asks of memory, over the bus: the one place that is patient."""

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pydantic import BaseModel

from bus_schema.ids import mint, uuid7
from bus_schema.messages import Command, Query
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.context import current_message
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.sdk.breaker import Breaker
from mindbus.sdk.local_memory import LocalAgentMemory
from mindbus.sdk.memory_failures import NoAnswer, Silence
from mindbus.sdk.patience import Patience
from mindbus.tasks import end

ResultT = TypeVar("ResultT", bound=BaseModel)
_AWAY = (Code.UNAVAILABLE, Code.EXPIRED)


class MemoryLink:
    """A service that is silent is left in peace; one that refuses a kind of question for now, with these alone.

    So where locks are away, units may still be there.
    """

    def __init__(
        self,
        bus: Client,
        patience: Patience,
        timeout_s: float = 10.0,
        breaker: Callable[[type[NoAnswer]], Breaker] = lambda counts: Breaker(counts=counts),
    ) -> None:
        self.bus, self.timeout_s, self._patience = bus, timeout_s, patience
        self._services = defaultdict[str | None, Breaker](lambda: breaker(Silence))
        self._kinds = defaultdict[str, Breaker](lambda: breaker(NoAnswer))
        self._aside: set[asyncio.Task[None]] = set()

    async def ask(
        self, command: Command[ResultT], *, timeout_s: float | None = None, trace: str | None = None
    ) -> ResultT:
        """Its result, asked for as often as it takes, carried out once. Raises MemoryAway, ReplyError."""
        message_id = _message_id(command)

        async def once() -> ResultT:
            nonlocal message_id
            try:
                return await self.bus.request(
                    command, timeout_s=timeout_s or self.timeout_s, trace=trace, message_id=message_id
                )
            except (BusUnavailable, NoReply) as silence:
                # It may have been carried out: under the same id the answer is what it was.
                raise Silence(str(silence)) from silence
            except ReplyError as no:
                if no.code not in _AWAY:
                    raise
                # An answer belongs to its id for good.
                message_id = _message_id(command)
                raise NoAnswer(no.message) from no

        async def watched() -> ResultT:
            wire = command.wire
            with self._services[wire.service].watching(), self._kinds[wire.type].watching():
                return await once()

        return await self._patience.until_it_works(watched, NoAnswer)

    def see_to(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done while whoever asked goes on."""
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def close(self) -> None:
        """See to nothing any more."""
        await end(*self._aside)


class OnMemory(ABC):
    """A part of the SDK."""

    local_memory: LocalAgentMemory

    @property
    @abstractmethod
    def link(self) -> MemoryLink:
        """The way to memory. Raises NotOpen."""


def minted(prefix: str) -> str:
    """A new id of a thing; the same again where the message at hand is handled again."""
    context = current_message()
    return mint(prefix) if context is None else f"{prefix}_{context.next_id(f'memory/{prefix}').replace('-', '')}"


def _message_id(command: Command[ResultT]) -> str:
    """Of its own kind: local memory may save a question that was asked the time before."""
    context = current_message()
    if context is None or isinstance(command, Query):
        return str(uuid7())
    return context.next_id(f"memory/{command.wire.type}")
