"""The gateway's connections: bus client, artifact store, event feed, timeline tail, shared memory; accounts' views."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from copy import copy
from datetime import datetime
from time import monotonic
from typing import Annotated, Self, TypeVar

from cachetools import LRUCache
from fastapi import Depends, Header, Query, Request
from pydantic import BaseModel

from bus_schema.conversations import DialoguePage, ListDialogues
from bus_schema.messages import Command
from bus_schema.process import GetProcess
from bus_schema.replies import Code
from bus_schema.runs import Run
from bus_schema.timeline import GetTimeline, GetTimelineBuckets, TimelineBuckets, TimelinePage
from config.settings import FleetSettings
from gateway.access_tokens import OWNER
from gateway.display_names import DisplayNames
from gateway.event_feed import EventFeed
from gateway.shared_memory import MemoryChangeListener, SharedMemories, SharedMemory
from gateway.sim_teams import simulated_names
from gateway.timeline_tail import TimelineTail
from gateway.token_budget import BudgetSpent, TokenBudget
from gateway.visibility import EventScope, ForOperators, NotAnothers, NotYours, VisibleFeed, VisibleTimeline
from mindbus.accounts import Account, accounts_of
from mindbus.bus.client import Client
from mindbus.bus.connection import find_broker
from mindbus.bus.worker import utc_now
from mindbus.errors import Rejected
from mindbus.management import QueueState, open_management
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.tasks import kept_running

QUEUE_PREFIX, DEAD_SUFFIX = "mb.q.", ".dead"
# Nobody waits longer at a screen.
QUERY_TIMEOUT_S = 10.0
_MAX_READERS = 200
_CHECKED_FOR_S = 1.0

_RUN = "run_"

ResultT = TypeVar("ResultT", bound=BaseModel)
TimelineQueryT = TypeVar("TimelineQueryT", GetTimeline, GetTimelineBuckets)


class TooManyUnanswered(Rejected, code=Code.UNAVAILABLE):
    """Too many messages of this user wait for their answers, which come one after the other: wait for some of them."""


class Backend:
    """Shared by all endpoints and screens of one gateway; `of` is the view of one account, which acts as that alone."""

    def __init__(self, bus: Client, settings: FleetSettings, clock: Callable[[], datetime] = utc_now) -> None:
        self._connection, self.settings, self.clock = bus, settings, clock
        self.bus = self._owners_bus = bus.acting_as(OWNER.identity, is_operator=True)
        self._owned = self.artifacts = open_artifacts(self.bus, settings, clock)
        self._readers: LRUCache[str, Artifacts] = LRUCache(_MAX_READERS)
        self._events = EventFeed(self.bus, settings.heartbeat_s, clock)
        self._timeline = TimelineTail(self.bus.request, self._events)
        self._memories = SharedMemories(bus)
        self._budget = TokenBudget(self._events, accounts_of(settings), clock)
        self._memory_listener = MemoryChangeListener(self._events, self._memories.changes)
        self._unanswered: Counter[str] = Counter()
        self.names = DisplayNames(self.bus, simulated_names())
        self._look_as(OWNER)

    @property
    def own_bus(self) -> Client:
        """The bus as the gateway itself."""
        return self._connection

    @property
    def events(self) -> EventFeed:
        """All events, for what is only told to operators."""
        return self._events

    def of(self, account: Account) -> Self:
        """The view of an account."""
        view = copy(self)
        view.bus = self._connection.acting_as(account.identity, is_operator=account.is_operator)
        view.artifacts = self._owned if account == OWNER else view._reader()
        view._look_as(account)
        return view

    def _look_as(self, account: Account) -> None:
        self.account, self._scope = account, EventScope(account)
        self._is_current, self._checked_at = True, monotonic()
        self.feed = VisibleFeed(self._events, self._scope)
        self.tail = VisibleTimeline(self._timeline, self._scope)

    def _reader(self) -> Artifacts:
        """Artifacts of the account to be read; they need not be started for that."""
        identity = self.bus.owner
        if identity not in self._readers:
            self._readers[identity] = open_artifacts(self.bus, self.settings, self.clock)
        return self._readers[identity]

    @asynccontextmanager
    async def own_artifacts(self) -> AsyncIterator[Artifacts]:
        """Artifacts of the account to be written."""
        if self.artifacts is self._owned:
            yield self._owned
            return
        async with open_artifacts(self.bus, self.settings, self.clock) as artifacts:
            yield artifacts

    def is_current(self) -> bool:
        """Whether the account is still what it was when this view was made, as far as is known for a second."""
        if self.account != OWNER and monotonic() - self._checked_at > _CHECKED_FOR_S:
            self._is_current = accounts_of(self.settings).of_identity(self.account.identity) == self.account
            self._checked_at = monotonic()
        return self._is_current

    def acting_as(self, user_id: str) -> Client:
        """The bus in the name of a user: of oneself, or of anybody for an operator. Raises NotYours."""
        if user_id == self.account.user_id:
            return self.bus
        if not self.account.is_operator:
            raise NotYours
        return self._connection.acting_as(f"user.{user_id}")

    def is_self(self, user_id: str) -> bool:
        """Whether the account is this user; the owner of the gateway, without an account, speaks as any."""
        return self.account == OWNER or self.account.user_id == user_id

    def acting_as_self(self, user_id: str) -> Client:
        """The bus in the name of a user, for what nobody decides for another. Raises NotAnothers."""
        if not self.is_self(user_id):
            raise NotAnothers
        return self.acting_as(user_id)

    @contextmanager
    def asking(self, user_id: str | None = None) -> Iterator[Client]:
        """The bus as the account, or `acting_as` a user, while a message to models waits here for its answer.

        One person's must not hold up all others'. Raises NotYours, BudgetSpent, TooManyUnanswered.
        """
        bus = self.bus if user_id is None else self.acting_as(user_id)
        self.require_budget()
        if 0 < self.settings.gateway_unanswered_messages <= self._unanswered[bus.owner]:
            raise TooManyUnanswered
        self._unanswered[bus.owner] += 1
        try:
            yield bus
        finally:
            self._unanswered[bus.owner] -= 1
            if not self._unanswered[bus.owner]:
                del self._unanswered[bus.owner]

    def artifacts_of(self, user_id: str) -> Artifacts:
        """Artifacts of the account, or of another user for an operator, to be read. Raises NotYours."""
        if user_id == self.account.user_id:
            return self.artifacts
        bus = self.acting_as(user_id)
        if bus.owner not in self._readers:
            self._readers[bus.owner] = open_artifacts(bus, self.settings, self.clock)
        return self._readers[bus.owner]

    def memory(self, user_id: str | None = None) -> SharedMemory:
        """Memory as the account, or another user for an operator, may read it. Raises NotYours."""
        return self._memories.of(self.bus.owner if user_id is None else self.acting_as(user_id).owner)

    def require_budget(self) -> None:
        """Raises BudgetSpent where a person's messages have cost their tokens of the day."""
        budget = self.settings.user_tokens_per_day
        if budget and not self.account.is_operator and self._budget.spent(self.account.identity) >= budget:
            raise BudgetSpent

    def require_operator(self) -> None:
        """Raises ForOperators."""
        if not self.account.is_operator:
            raise ForOperators

    async def query(self, command: Command[ResultT], timeout_s: float = QUERY_TIMEOUT_S) -> ResultT:
        """Result of a command to a memory service. Raises ReplyError, BusUnavailable."""
        return await self.bus.request(command, timeout_s=timeout_s)

    async def dialogues(self, limit: int, cursor: str | None = None) -> DialoguePage:
        """All dialogues for an operator, for a user the own one. Raises ReplyError, BusUnavailable."""
        user_id = None if self.account.is_operator else self.account.user_id
        return await self.bus.request(ListDialogues(user_id=user_id, limit=limit, cursor=cursor))

    async def run(self, run_id: str) -> Run:
        """A run that the account may see, whose events it sees from now on. Raises ReplyError, BusUnavailable."""
        run = await self.bus.request(GetProcess(run_id=run_id), trace=run_id)
        self._scope.let_in(run_id)
        return run

    async def visible(self, query: TimelineQueryT) -> TimelineQueryT:
        """A query of the timeline for what of it may be seen. Raises NotYours, ReplyError, BusUnavailable."""
        trace = query.trace_id
        if trace is not None and trace.startswith(_RUN) and not self.account.is_operator:
            await self.run(trace)
        return self._scope.narrow(query)

    async def recorded(self, query: GetTimeline) -> TimelinePage:
        """A page of the timeline, of what may be seen. Raises NotYours, ReplyError, BusUnavailable."""
        return await self._owners_bus.request(await self.visible(query))

    async def counted(self, query: GetTimelineBuckets) -> TimelineBuckets:
        """Numbers of events, of those that may be seen. Raises NotYours, ReplyError, BusUnavailable."""
        return await self._owners_bus.request(await self.visible(query))

    async def queues(self, prefix: str = "mb.") -> list[QueueState]:
        """All queues whose names begin so. Raises ManagementUnavailable."""
        return await open_management(self.settings, find_broker(self.settings)).queues(prefix)

    async def dead_letter_counts(self) -> dict[str, int]:
        """Number of dead letters by service, of every service that can have some. Raises ManagementUnavailable."""
        return {
            queue.name.removeprefix(QUEUE_PREFIX).removesuffix(DEAD_SUFFIX): queue.depth
            for queue in await self.queues(QUEUE_PREFIX)
            if queue.name.endswith(DEAD_SUFFIX)
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connected for the time of a block. Raises BusUnavailable."""
        async with self._events.receiving(), AsyncExitStack() as stack:
            await self._owned.start()
            stack.push_async_callback(self._owned.stop)
            await stack.enter_async_context(kept_running(self._timeline.run, "timeline tail"))
            await stack.enter_async_context(kept_running(self._memory_listener.run, "memory changes"))
            if self.settings.user_tokens_per_day:
                await stack.enter_async_context(kept_running(self._budget.run, "token budget"))
            yield


def _backend(request: Request) -> Backend:
    """The view of whoever is signed in."""
    backend: Backend = request.app.state.backend
    return backend.of(request.state.account)


def _operators_backend(backend: Annotated[Backend, Depends(_backend)]) -> Backend:
    backend.require_operator()
    return backend


# Parameters of endpoints.
BackendDependency = Annotated[Backend, Depends(_backend)]
OperatorsBackend = Annotated[Backend, Depends(_operators_backend)]
Cursor = Annotated[str | None, Query(max_length=256)]
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=256, description="The same key is the same message."),
]
