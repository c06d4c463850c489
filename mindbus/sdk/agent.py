"""Shared memory for agents (spec 000 §3.5), for asyncio and for threads."""

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from bus_schema.swm import Lock
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.sdk.coordination import CoordinationClient, LockTerms
from mindbus.sdk.errors import NotOpen
from mindbus.sdk.kems import KemWriter
from mindbus.sdk.local_memory import MAX_BYTES, LocalAgentMemory
from mindbus.sdk.memory_link import MemoryLink
from mindbus.sdk.requests import RetryPolicy
from mindbus.sdk.swm_events import SubscriptionClient, SwmEvent
from mindbus.settings import Settings


class AgentSDK(KemWriter, CoordinationClient, SubscriptionClient):
    """`async with AgentSDK("agent.planner", lpa_indexed_keys=["topic"]) as memory`; within a worker, give it its bus.

    Requests are repeated until there is a reply and take effect once; MemoryAway is raised where there is none.
    """

    def __init__(
        self,
        agent_id: str = "user.local",
        *,
        lpa_indexed_keys: Iterable[str] = (),
        lpa_max_bytes: int = MAX_BYTES,
        bus: Client | None = None,
        settings: Settings | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self._agent_id, self._settings, self._retries = agent_id, settings, retry_policy or RetryPolicy()
        self.local_memory = LocalAgentMemory(lpa_indexed_keys, lpa_max_bytes)
        self._own_bus: Client | None = None
        self._link = None if bus is None else MemoryLink(bus, self._retries)

    @property
    def agent_id(self) -> str:
        """The identity of its requests. Raises NotOpen."""
        return self.link.bus.owner

    @property
    def link(self) -> MemoryLink:
        """The connection to memory. Raises NotOpen."""
        if self._link is None:
            raise NotOpen(NotOpen.__doc__)
        return self._link

    async def __aenter__(self) -> Self:
        """Connect to the bus. Raises NoBroker."""
        if self._link is None:
            self._own_bus = connect(self._agent_id, settings=self._settings)
            self._link = MemoryLink(self._own_bus, self._retries)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.link.close()
        if self._own_bus is not None:
            await self._own_bus.close()
            self._own_bus = self._link = None


P = ParamSpec("P")
T = TypeVar("T")


def _waiting(
    method: Callable[Concatenate[AgentSDK, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncAgentSDK", P], T]:
    """The blocking form of a method, for callers in a thread."""

    @functools.wraps(method)
    def wait_for(self: "SyncAgentSDK", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.wait(method(self.asynchronous, *args, **kwargs))

    return wait_for


class SdkOptions(TypedDict, total=False):
    """Options of AgentSDK, which has a connection of its own here."""

    lpa_indexed_keys: Iterable[str]
    lpa_max_bytes: int
    settings: Settings | None
    retry_policy: RetryPolicy | None


class SyncAgentSDK:
    """AgentSDK in a thread of its own: `with SyncAgentSDK("agent.planner") as memory`. Any thread may use it."""

    get_kem = _waiting(AgentSDK.get_kem)
    query_swm = _waiting(AgentSDK.query_swm)
    retrieve_kems = _waiting(AgentSDK.retrieve_kems)
    load_kems_to_lpa_from_swm = _waiting(AgentSDK.load_kems_to_lpa_from_swm)
    prefetch = _waiting(AgentSDK.prefetch)
    store_kems = _waiting(AgentSDK.store_kems)
    publish_kems_to_swm_batch = _waiting(AgentSDK.publish_kems_to_swm_batch)
    update_kem = _waiting(AgentSDK.update_kem)
    delete_kem = _waiting(AgentSDK.delete_kem)
    process_raw_data = _waiting(AgentSDK.process_raw_data)
    end_subscription = _waiting(AgentSDK.end_subscription)
    acquire_distributed_lock = _waiting(AgentSDK.acquire_distributed_lock)
    release_distributed_lock = _waiting(AgentSDK.release_distributed_lock)
    get_distributed_lock_info = _waiting(AgentSDK.get_distributed_lock_info)
    increment_distributed_counter = _waiting(AgentSDK.increment_distributed_counter)
    get_distributed_counter = _waiting(AgentSDK.get_distributed_counter)

    def __init__(self, agent_id: str = "user.local", **options: Unpack[SdkOptions]) -> None:
        self.asynchronous = AgentSDK(agent_id, **options)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="agent sdk", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._begun = threading.Event()

    def query_local_memory(self, query: KemQuery | None = None) -> list[Kem]:
        return self.asynchronous.query_local_memory(query)

    @contextmanager
    def handle_swm_events(self, *filters: str, name: str | None = None) -> Iterator[Iterator[SwmEvent]]:
        """As AgentSDK.handle_swm_events: `with … as events: for event in events`."""
        events = self.asynchronous.handle_swm_events(*filters, name=name)
        self.wait(events.__aenter__())

        async def next_of() -> SwmEvent:
            return await anext(events)

        def one_by_one() -> Iterator[SwmEvent]:
            while True:
                yield self.wait(next_of())

        try:
            yield one_by_one()
        finally:
            self.wait(events.__aexit__())

    @contextmanager
    def distributed_lock(self, name: str, **terms: Unpack[LockTerms]) -> Iterator[Lock]:
        """As AgentSDK.distributed_lock, but no thread is cancelled: LockLost is raised at the end of the block."""
        acquired: concurrent.futures.Future[Lock] = concurrent.futures.Future()
        done = asyncio.Event()

        async def hold() -> None:
            try:
                async with self.asynchronous.distributed_lock(name, **terms) as lock:
                    acquired.set_result(lock)
                    await done.wait()
            except BaseException as failure:
                # A later failure is raised at the end of the block.
                if acquired.done():
                    raise
                acquired.set_exception(failure)

        holding = self._begin(hold())
        try:
            yield acquired.result()
        finally:
            self._tell(done)
            holding.result()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work in the thread of the bus. Raises NotOpen."""
        waiting = self._begin(work)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    def __enter__(self) -> Self:
        """Connect to the bus. Raises NoBroker."""
        self._thread.start()
        self._begun.wait()
        try:
            self.wait(self.asynchronous.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        try:
            self.wait(self.asynchronous.__aexit__())
        finally:
            self._end()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        await self._ended.wait()
        self._loop = None

    def _begin(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        if self._loop is None:
            work.close()
            raise NotOpen(NotOpen.__doc__)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _tell(self, event: asyncio.Event) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(event.set)

    def _end(self) -> None:
        self._tell(self._ended)
        self._thread.join()
