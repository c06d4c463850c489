"""Visibility: which events, users and screens a signed-in account may see; an operator sees all."""

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager
from typing import TypeVar

from bus_schema.dialogue import conversation_trace
from bus_schema.envelope import Envelope
from bus_schema.replies import Code
from bus_schema.timeline import GetTimeline, GetTimelineBuckets, TimelineEvent
from gateway.event_feed import EventFeed, Listener, WorkerInstance
from gateway.timeline_tail import TimelineTail
from mindbus.accounts import Account
from mindbus.errors import Rejected

QueryT = TypeVar("QueryT", GetTimeline, GetTimelineBuckets)


class NotYours(Rejected, code=Code.UNAUTHORIZED):
    """You are signed in as somebody else; only an operator sees and does what is another's."""


class NotAnothers(Rejected, code=Code.UNAUTHORIZED):
    """Only the person whom the assistant has answered rates the answer; not even an operator does it for them."""


class ForOperators(Rejected, code=Code.UNAUTHORIZED):
    """This is for operators: an account with the role operator."""


class EventScope:
    """Events that an account may see: those about its person, and of traces that it has been let into."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._traces = {conversation_trace(account.name)} if account.user_id else set[str]()

    def let_in(self, trace_id: str) -> None:
        """Show the events of a trace, such as of a run that its service has shown to the account."""
        self._traces.add(trace_id)

    def has(self, envelope: Envelope) -> bool:
        if self._account.is_operator or envelope.mbtraceid in self._traces:
            return True
        return self._account.user_id is not None and TimelineEvent.of(envelope).user_id == self._account.user_id

    def narrow(self, query: QueryT) -> QueryT:
        """The query for what of it may be seen. Raises NotYours."""
        if self._account.is_operator or query.trace_id in self._traces:
            return query
        if self._account.user_id is None or query.user_id not in (None, self._account.user_id):
            raise NotYours
        return query.model_copy(update={"user_id": self._account.user_id})


class VisibleFeed:
    """The event feed as an account may see it."""

    def __init__(self, feed: EventFeed, scope: EventScope) -> None:
        self._feed, self._scope = feed, scope

    def listen(self) -> AbstractContextManager[Listener[Envelope]]:
        """A listener of the events that may be seen."""
        return self._feed.listen(accepts=self._scope.has)

    @property
    def is_connected(self) -> bool:
        return self._feed.is_connected

    @property
    def workers(self) -> list[WorkerInstance]:
        return self._feed.workers


class VisibleTimeline:
    """The end of the timeline as an account may see it."""

    def __init__(self, tail: TimelineTail, scope: EventScope) -> None:
        self._tail, self._scope = tail, scope
        self.start_cursor = tail.start_cursor

    async def read(self, query: GetTimeline, max_pages: int) -> tuple[list[TimelineEvent], bool]:
        """As of the tail. Raises NotYours, ReplyError, BusUnavailable."""
        return await self._tail.read(self._scope.narrow(query), max_pages)

    def follow(self, query: GetTimeline) -> AsyncGenerator[TimelineEvent]:
        """As of the tail. Raises NotYours."""
        return self._tail.follow(self._scope.narrow(query))
