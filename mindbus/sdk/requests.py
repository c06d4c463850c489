"""Requests to other services: message ids of their own within a handler, retries with back-off, a circuit breaker."""

import asyncio
import math
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from bus_schema.messages import Command, Page, Query
from bus_schema.replies import Reply, ReplyBatch
from mindbus.bus.client import Client, result_of
from mindbus.bus.context import MessageContext, current_message
from mindbus.errors import Rejected, ReplyError, TemporaryFailure
from mindbus.sdk.errors import CircuitOpen, MemoryFailed

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound=BaseModel)
ItemT = TypeVar("ItemT", bound=BaseModel)
PartT = TypeVar("PartT")


async def in_id_scope(scope: str | None, work: Callable[[], Awaitable[T]]) -> T:
    """Await the work with message ids derived from the scope and the current message, not counted among its messages.

    None is a random scope: a repeated handler asks anew.

    A handler that runs again may request less, since it finds what it made before. If its requests were counted with
    its results, a result could bear the id of another message and be taken for that one's repetition.
    """
    context = current_message()
    if context is None:
        return await work()
    consumer = f"{context.consumer}/{scope or secrets.token_hex(8)}"
    return await asyncio.create_task(_run_in_scope(replace(context, consumer=consumer, sent=Counter()), work))


async def request(bus: Client, command: Command[ResultT], **where: Any) -> ResultT:
    """Result of a command; an error reply is passed on. Raises Rejected, TemporaryFailure, BusUnavailable."""
    with _translated_errors(command.wire.type):
        return await bus.request(command, **where)


async def request_in_scope(bus: Client, command: Command[ResultT], scope: str | None = None, **where: Any) -> ResultT:
    """As `request`, in an id scope."""
    return await in_id_scope(scope, lambda: request(bus, command, **where))


async def items_of(bus: Client, query: Query[Page[ItemT]], **where: Any) -> AsyncIterator[ItemT]:
    """The items of every page of a query, each requested in a random id scope. Raises as `request` does."""
    while True:
        page = await request_in_scope(bus, query, **where)
        for item in page.items:
            yield item
        if page.next_cursor is None:
            return
        query = query.model_copy(update={"cursor": page.next_cursor})


_Parts = Sequence[tuple[PartT, "asyncio.Future[ResultT]"]]


class RequestGroup(Generic[PartT, ResultT]):
    """Requests of many callers to one service: what comes while one is under way goes in one message after it.

    So many callers need few messages, and one alone waits for nobody.
    """

    def __init__(
        self,
        bus: Client,
        message_of: Callable[[Sequence[PartT]], Command[ReplyBatch]],
        expected: type[ResultT],
        most: int,
    ) -> None:
        self._bus, self._message_of, self._expected, self._most = bus, message_of, expected, most
        self._waiting: deque[tuple[PartT, asyncio.Future[ResultT]]] = deque()
        self._is_busy = False
        self._sending: asyncio.Task[None] | None = None

    async def request(self, part: PartT, alone: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Result of `alone` where nobody else's is under way, else of this part of a message. Raises as `request`."""
        if self._is_busy:
            answered: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
            self._waiting.append((part, answered))
            return await answered
        self._is_busy = True
        try:
            return await alone()
        finally:
            self._go_on()

    def _go_on(self) -> None:
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            # It is nobody's alone: without the message that its first caller handles, and not cancelled with it.
            self._sending = asyncio.create_task(self._send_waiting(), context=Context())

    async def _send_waiting(self) -> None:
        several = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
        # Who has given up meanwhile is asked for no more.
        parts = [each for each in several if not each[1].done()]
        try:
            if parts:
                await self._send(parts)
        finally:
            self._go_on()

    async def _send(self, parts: "_Parts[PartT, ResultT]") -> Exception | None:
        """Send parts in one message; where it is refused, each alone, since one may be at fault; what failed."""
        try:
            replies = await request(self._bus, self._message_of([part for part, _answered in parts]))
            for (_part, answered), reply in zip(parts, replies.items, strict=True):
                self._answer(answered, reply)
        except Exception as error:  # noqa: BLE001  # whoever waits hears it
            if len(parts) == 1 or isinstance(error, TemporaryFailure):
                for _part, answered in parts:
                    if not answered.done():
                        answered.set_exception(error)
                return error
            # In their order. Where the service is away, the rest needs no attempts of its own.
            failure: Exception | None = None
            while parts and not isinstance(failure, TemporaryFailure):
                failure = None if parts[0][1].done() else await self._send(parts[:1])
                parts = parts[1:]
            for _part, answered in parts:
                if not answered.done():
                    answered.set_exception(failure or error)
        return None

    def _answer(self, answered: "asyncio.Future[ResultT]", reply: Reply) -> None:
        if answered.done():
            return
        try:
            with _translated_errors(self._expected.__name__):
                answered.set_result(result_of(reply, self._expected))
        except (Rejected, TemporaryFailure) as error:
            answered.set_exception(error)


@contextmanager
def _translated_errors(asked: str) -> Iterator[None]:
    """Raises TemporaryFailure or Rejected in place of ReplyError."""
    try:
        yield
    except ReplyError as error:
        if error.retryable:
            raise TemporaryFailure(f"{asked}: {error}") from error
        raise Rejected(error.code, error.message, error.details) from error


async def _run_in_scope(context: MessageContext, work: Callable[[], Awaitable[T]]) -> T:
    with context:
        return await work()


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter."""

    attempts: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 4.0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)

    async def run(self, work: Callable[[], Awaitable[T]], failure: type[Exception], within_s: float = math.inf) -> T:
        """Result of the work, tried again after `failure`; raises it after the last attempt, anything else at once.

        No attempt begins after `within_s` seconds.
        """
        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.attempts) | stop_before_delay(within_s),
            wait=wait_random_exponential(multiplier=self.first_wait_s, max=self.longest_wait_s),
            retry=retry_if_exception_type(failure),
            reraise=True,
        )

        async def once() -> T:
            return await work()

        return await retrying(once)


class CircuitBreaker:
    """After `opens_after` failures in a row it rejects calls for `opens_for_s`; then one call is let through."""

    def __init__(
        self,
        opens_after: int = 5,
        opens_for_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        counts: type[Exception] = MemoryFailed,
    ) -> None:
        self._opens_after, self._opens_for_s, self._clock, self._counts = opens_after, opens_for_s, clock, counts
        self._failures = 0
        self._opened_at = 0.0
        self._is_probing = False

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Run the block, or raise CircuitOpen instead; `counts` is a failure, any other error a sign of life."""
        was_open = self._failures >= self._opens_after
        if was_open and (self._is_probing or self._clock() < self._opened_at + self._opens_for_s):
            raise CircuitOpen
        self._is_probing = was_open
        try:
            yield
        except CircuitOpen:
            # Another breaker is open: nobody was asked.
            raise
        except self._counts:
            self._failures += 1
            self._opened_at = self._clock()
            raise
        except Exception:
            self._failures = 0
            raise
        else:
            self._failures = 0
        finally:
            if was_open:
                self._is_probing = False
