"""The bus connection of one command, and what it asks over it: one answer, all pages, events as they come."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel

from bus_schema.codes import Code
from bus_schema.identities import user_of
from bus_schema.messages import Command, Page, Query
from bus_schema.users import GetUser, PutUser, User
from mindbus.broker_url import DEFAULT_PORTS, endpoints_of
from mindbus.bus.client import Client, ResultT
from mindbus.bus.connection import connect, find_broker
from mindbus.cli.console import errors, note
from mindbus.cli.errors import CommandError, read_settings, valid_options
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, own_identity
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.settings import Settings
from mindbus.spans import exporting
from mindbus.tasks import end

T = TypeVar("T")
ItemT = TypeVar("ItemT", bound=BaseModel)
PageT = TypeVar("PageT", bound=BaseModel)
# A store of millions takes its time.
WITHIN_S = 3600.0
_REACH_WITHIN_S = 3.0
_SHOWN_AFTER_S = 1.0
_KNOWN_WITHIN_S = 3.0
GOES_ON = "What the fleet has been asked for goes on there."


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def run_until_interrupted(work: Coroutine[Any, Any, object]) -> None:
    """Run what goes on until Ctrl-C, which is its proper end."""
    with suppress(KeyboardInterrupt):
        run(work)


@asynccontextmanager
async def on_the_bus(
    identity: str, settings: Settings | None = None, *, goes_on: str | None = GOES_ON, speaks: bool = False
) -> AsyncIterator[Client]:
    """A client that speaks as `identity`. Raises NoBroker, CommandError where nothing listens.

    `goes_on` tells whoever presses Ctrl-C what that does not end. Who `speaks`, rather than asks, is a user
    from then on.
    """
    settings = settings or read_settings()
    await require_reachable(find_broker(settings))
    with exporting("cli", os.environ):
        async with connect(identity, settings=settings, service="cli") as client:
            if speaks:
                await _introduce(client)
            try:
                yield client
            except asyncio.CancelledError:
                if goes_on is not None:
                    note(goes_on)
                raise


@asynccontextmanager
async def shown_waiting(what: str = "Waiting for the answer …") -> AsyncIterator[None]:
    """Show at a terminal, from a second on, that something is awaited."""
    if not sys.stderr.isatty():
        yield
        return

    async def show() -> None:
        await asyncio.sleep(_SHOWN_AFTER_S)
        with errors().status(translate(what)):
            await asyncio.Event().wait()

    showing = asyncio.create_task(show(), name="show that something is awaited")
    try:
        yield
    finally:
        await end(showing)


async def _introduce(bus: Client) -> None:
    """Make an unknown name a user, called by it, where the owner of the node speaks for them.

    Whoever has an account is one already, or is added by an operator.
    """
    user_id = user_of(bus.identity)
    if user_id is None or bus.identity == LOCAL_USER or own_identity() is not None:
        return
    # Should storage be away, nobody has to wait for it with what they say.
    with suppress(BusUnavailable, NoReply):
        try:
            await bus.request(GetUser(user_id=user_id), timeout_s=_KNOWN_WITHIN_S)
        except ReplyError as unknown:
            if unknown.code is Code.NOT_FOUND:
                new = PutUser(user=User(user_id=user_id, name=user_id), expected_version=0)
                # Somebody else may have added them meanwhile.
                with suppress(ReplyError):
                    await bus.acting_as(LOCAL_USER, is_operator=True).request(new, timeout_s=_KNOWN_WITHIN_S)


async def require_reachable(amqp_url: str) -> None:
    """Find out in seconds what a client, which waits for a broker to come back, would take long to say."""
    if urlsplit(amqp_url).scheme not in DEFAULT_PORTS:
        return
    endpoints = endpoints_of(amqp_url)
    for host, port in endpoints:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_REACH_WITHIN_S / len(endpoints)):
                _reader, writer = await asyncio.open_connection(host, port)
                writer.close()
                await writer.wait_closed()
            return
    places = ", ".join(f"{host}:{port}" for host, port in endpoints)
    raise CommandError(
        f"RabbitMQ does not answer at {places}: run `mindbus up`, or correct MINDBUS_AMQP_URL", Code.UNAVAILABLE
    )


def answer_to(
    command: Callable[[], Command[ResultT]], identity: str, *, trace: str | None = None, longer_by_s: float = 0
) -> ResultT:
    """The result of one command. Raises UsageError where the options make none, ReplyError, BusUnavailable."""
    with valid_options():
        request = command()

    async def ask() -> ResultT:
        settings = read_settings()
        speaks = not isinstance(request, Query)
        async with on_the_bus(identity, settings, speaks=speaks) as bus, shown_waiting():
            return await bus.request(request, trace=trace, timeout_s=settings.request_timeout_s + longer_by_s)

    return run(ask())


def items_of(
    query: Callable[[], Command[Page[ItemT]]], identity: str, limit: int | None = None, *, trace: str | None = None
) -> list[ItemT]:
    """As `answer_to`: the items of all pages of a listing, at most `limit` of them."""
    with valid_options():
        request = query()

    async def ask() -> list[ItemT]:
        async with on_the_bus(identity) as bus, shown_waiting():
            return await request_items(bus, request, limit, trace)

    return run(ask())


async def request_items(
    bus: Client, query: Command[Page[ItemT]], limit: int | None = None, trace: str | None = None
) -> list[ItemT]:
    """The items of all pages, at most `limit`; the cursor of the last page is None or that of the page itself."""
    items: list[ItemT] = []
    while True:
        page = await bus.request(query, trace=trace)
        items += page.items
        is_last = page.next_cursor in (None, getattr(query, "cursor", None))
        if is_last or (limit is not None and len(items) >= limit):
            return items[:limit]
        query = query.model_copy(update={"cursor": page.next_cursor})


async def answer_if_there(bus: Client, query: Command[ResultT], **where: Any) -> ResultT | None:
    """The answer; None where the service or the broker does not answer just now. Raises ReplyError."""
    try:
        return await bus.request(query, **where)
    except ReplyError as error:
        if not error.retryable:
            raise
    except BusUnavailable:
        pass
    return None


async def show_each(
    events: AsyncIterator[T], show: Callable[[T], object], count: int | None, for_s: float | None
) -> None:
    """Show events as they come: at most `count`, no longer than `for_s` seconds; None is without end."""
    shown = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(for_s):
            async for event in events:
                show(event)
                shown += 1
                if shown == count:
                    return


async def all_pages(
    what: str,
    page_after: Callable[[str | None], Command[PageT]],
    done_by: Callable[[list[PageT]], tuple[int, int]],
    by: str,
) -> list[PageT]:
    """All pages of a work that is too long for one answer, with a progress bar for who watches."""
    pages: list[PageT] = []
    cursor: str | None = None
    async with on_the_bus(by) as bus:
        with progress_of(what) as tell:
            while not pages or cursor is not None:
                pages.append(await bus.request(page_after(cursor), timeout_s=WITHIN_S))
                cursor = getattr(pages[-1], "next_cursor", None)
                tell(*done_by(pages))
    return pages


class TellProgress(Protocol):
    """How much is done, of how much, and what is being worked on."""

    def __call__(self, done: int, total: int, at: str = "") -> None: ...


@contextmanager
def progress_of(what: str) -> Iterator["TellProgress"]:
    """A bar for who watches."""
    # Imported here: most commands show none.
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = errors()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)

        def tell(done: int, total: int, at: str = "") -> None:
            progress.update(task, completed=done, total=total, description=escape(f"{what} {at}".strip()))

        yield tell
