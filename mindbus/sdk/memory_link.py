"""What the SDK asks of memory, over the bus: the one place that is patient."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from bus_schema.ids import mint, uuid7
from bus_schema.messages import Command, Query
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.failures import BusUnavailable, CommandFailed, NoReply
from mindbus.bus.handling import at_hand
from mindbus.sdk.breaker import Breaker
from mindbus.sdk.local_memory import LocalAgentMemory
from mindbus.sdk.memory_failures import NoAnswer
from mindbus.sdk.patience import Patience

ResultT = TypeVar("ResultT", bound=BaseModel)
_AWAY = (Code.UNAVAILABLE, Code.EXPIRED)


class MemoryLink:
    """Each kind of question has a breaker of its own: where locks are away, units may still be there."""

    def __init__(
        self, bus: Client, patience: Patience, timeout_s: float = 10.0, breaker: Callable[[], Breaker] = Breaker
    ) -> None:
        self.bus, self.timeout_s, self._patience = bus, timeout_s, patience
        self._breakers: defaultdict[str, Breaker] = defaultdict(breaker)

    async def ask(
        self, command: Command[ResultT], *, timeout_s: float | None = None, trace: str | None = None
    ) -> ResultT:
        """Its result, asked for as often as it takes, carried out once. Raises MemoryAway, CommandFailed."""
        kind = command.wire.type
        message_id = _message_id(command)

        async def once() -> ResultT:
            nonlocal message_id
            try:
                return await self.bus.request(
                    command, timeout_s=timeout_s or self.timeout_s, trace=trace, message_id=message_id
                )
            except (BusUnavailable, NoReply) as silence:
                # It may have been carried out: under the same id the answer is what it was.
                raise NoAnswer(str(silence)) from silence
            except CommandFailed as no:
                if no.code not in _AWAY:
                    raise
                # An answer belongs to its id for good.
                message_id = _message_id(command)
                raise NoAnswer(no.message) from no

        async def watched() -> ResultT:
            with self._breakers[kind].watching():
                return await once()

        return await self._patience.until_it_works(watched, NoAnswer)


class OnMemory(ABC):
    """A part of the SDK."""

    local_memory: LocalAgentMemory

    @property
    @abstractmethod
    def link(self) -> MemoryLink:
        """The way to memory. Raises NotOpen."""


def minted(prefix: str) -> str:
    """A new id of a thing; the same again where the message at hand is handled again."""
    handling = at_hand()
    return mint(prefix) if handling is None else f"{prefix}_{handling.next_id(f'memory/{prefix}').replace('-', '')}"


def _message_id(command: Command[ResultT]) -> str:
    """Of its own kind: local memory may save a question that was asked the time before."""
    handling = at_hand()
    if handling is None or isinstance(command, Query):
        return str(uuid7())
    return handling.next_id(f"memory/{command.wire.type}")
