"""Requests of the SDK to memory, with retries and circuit breakers."""

import asyncio
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bus_schema.envelope import explain
from bus_schema.glm import MAX_BATCH
from bus_schema.ids import mint, uuid7
from bus_schema.kem import Kem, KemDraft
from bus_schema.messages import Command, Query
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.context import current_message
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.sdk.errors import MalformedKem, MemoryFailed, MemorySilent
from mindbus.sdk.local_memory import LocalAgentMemory
from mindbus.sdk.requests import CircuitBreaker, RetryPolicy
from mindbus.tasks import end

ResultT = TypeVar("ResultT", bound=BaseModel)
_UNAVAILABLE = (Code.UNAVAILABLE, Code.EXPIRED)


# Time of the event loop by which the current call has to be over.
_ends_at: ContextVar[float] = ContextVar("_ends_at", default=math.inf)


def _left_s() -> float:
    return _ends_at.get() - asyncio.get_running_loop().time()


class MemoryLink:
    """Requests to memory; one breaker per service for silence, one per type of request for refusals.

    So where locks are unavailable, units may still be read.
    """

    def __init__(
        self,
        bus: Client,
        retries: RetryPolicy,
        timeout_s: float = 10.0,
        breaker: Callable[[type[MemoryFailed]], CircuitBreaker] = lambda counts: CircuitBreaker(counts=counts),
    ) -> None:
        self.bus, self.timeout_s, self._retries = bus, timeout_s, retries
        self._services = defaultdict[str | None, CircuitBreaker](lambda: breaker(MemorySilent))
        self._kinds = defaultdict[str, CircuitBreaker](lambda: breaker(MemoryFailed))
        self._background: set[asyncio.Task[None]] = set()

    @contextmanager
    def within(self, timeout_s: float) -> Iterator[None]:
        """Give all requests of the block together so much time; what an outer block has left is the most."""
        ends_at = min(asyncio.get_running_loop().time() + timeout_s, _ends_at.get())
        token = _ends_at.set(ends_at)
        try:
            yield
        finally:
            _ends_at.reset(token)

    async def ask(
        self, command: Command[ResultT], *, timeout_s: float | None = None, trace: str | None = None
    ) -> ResultT:
        """Result of a request, tried again as the policy says, carried out once. Raises MemoryAway, ReplyError."""
        message_id = _message_id(command)

        async def once() -> ResultT:
            nonlocal message_id
            limit_s = min(timeout_s or self.timeout_s, _left_s())
            if limit_s <= 0:
                raise MemorySilent("no time is left for this request")
            try:
                return await self.bus.request(command, timeout_s=limit_s, trace=trace, message_id=message_id)
            except (BusUnavailable, NoReply) as error:
                # It may have been carried out: under the same id the reply is the same.
                raise MemorySilent(str(error)) from error
            except ReplyError as error:
                if error.code not in _UNAVAILABLE:
                    raise
                # A reply is stored under its id for good.
                message_id = _message_id(command)
                raise MemoryFailed(error.message) from error

        async def guarded() -> ResultT:
            wire = command.wire
            with self._services[wire.service].guard(), self._kinds[wire.type].guard():
                return await once()

        return await self._retries.run(guarded, MemoryFailed, _left_s())

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        await end(*self._background)


class SdkPart(ABC):
    """Base of the parts of AgentSDK."""

    local_memory: LocalAgentMemory

    @property
    @abstractmethod
    def link(self) -> MemoryLink:
        """The connection to memory. Raises NotOpen."""


def mint_id(prefix: str) -> str:
    """A new id; the same id where the current message is handled again."""
    context = current_message()
    return mint(prefix) if context is None else f"{prefix}_{context.next_id(f'memory/{prefix}').replace('-', '')}"


def _message_id(command: Command[ResultT]) -> str:
    """Counted by type: local memory may make a request unnecessary that was sent the time before."""
    context = current_message()
    if context is None or isinstance(command, Query):
        return str(uuid7())
    return context.next_id(f"memory/{command.wire.type}")


NewKem = KemDraft | Mapping[str, Any]
Batch = tuple[KemDraft, ...]


def batches_of(units: Iterable[NewKem]) -> Iterator[Batch]:
    """Batches of drafts; each draft has its id before it is sent, so that it is stored once. Raises MalformedKem."""
    drafts = [_draft_of(unit, number) for number, unit in enumerate(units, 1)]
    named = [draft if draft.id else draft.model_copy(update={"id": mint_id("kem"), "is_new": True}) for draft in drafts]
    for start in range(0, len(named), MAX_BATCH):
        yield tuple(named[start : start + MAX_BATCH])


def _draft_of(unit: NewKem, number: int) -> KemDraft:
    if isinstance(unit, KemDraft):
        return unit
    if not isinstance(unit, Mapping):
        raise MalformedKem(f"unit {number} is of the type {type(unit).__name__}")
    try:
        return KemDraft.model_validate(dict(unit))
    except ValidationError as invalid:
        raise MalformedKem(f"unit {number}: {explain(invalid)}") from invalid


def without_vector(kem: Kem) -> Kem:
    """The unit as results have it: some kilobytes of numbers that hardly anybody looks at are left out."""
    return kem if kem.embeddings is None else kem.model_copy(update={"embeddings": None})
