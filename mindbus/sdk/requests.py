"""Requests to other services from within a handler, under message ids of their own."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from bus_schema.agent_data import AgentDataPage
from bus_schema.conversations import ActiveDialogues
from bus_schema.messages import Command, Query
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext, current_message
from mindbus.errors import Rejected, ReplyError, TemporaryFailure

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound=BaseModel)
PageT = TypeVar("PageT", AgentDataPage, ActiveDialogues)


async def in_id_scope(scope: str, work: Callable[[], Awaitable[T]]) -> T:
    """Await the work with message ids derived from the scope and the current message, not counted among its messages.

    A handler that runs again may request less, since it finds what it made before. If its requests were counted with
    its results, a result could bear the id of another message and be taken for that one's repetition.
    """
    context = current_message()
    if context is None:
        return await work()
    return await asyncio.create_task(
        _scoped(replace(context, consumer=f"{context.consumer}/{scope}", sent=Counter()), work)
    )


async def request(bus: Client, command: Command[ResultT], **where: Any) -> ResultT:
    """Result of a command; an error reply is passed on. Raises Rejected, TemporaryFailure, BusUnavailable."""
    try:
        return await bus.request(command, **where)
    except ReplyError as error:
        if error.retryable:
            raise TemporaryFailure(f"{command.wire.type}: {error}") from error
        raise Rejected(error.code, error.message, error.details) from error


async def scoped_request(bus: Client, command: Command[ResultT], scope: str | None = None, **where: Any) -> ResultT:
    """As `request`, in an id scope: without a name in a random one, so that a repeated handler asks anew."""
    return await in_id_scope(scope or secrets.token_hex(8), lambda: request(bus, command, **where))


async def pages_of(bus: Client, query: Query[PageT]) -> AsyncIterator[PageT]:
    """Every page of a query, each requested in a random id scope. Raises as `request` does."""
    while True:
        page = await scoped_request(bus, query)
        yield page
        if page.next_cursor is None:
            return
        query = query.model_copy(update={"cursor": page.next_cursor})


async def in_random_scope(work: Callable[[], Awaitable[T]]) -> T:
    """As `in_id_scope`: a repeated handler asks anew."""
    return await in_id_scope(secrets.token_hex(8), work)


async def _scoped(context: MessageContext, work: Callable[[], Awaitable[T]]) -> T:
    with context:
        return await work()
