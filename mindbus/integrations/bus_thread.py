"""A client of the bus in a thread of its own, for frameworks that call from any thread and any event loop."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.settings import Settings

T = TypeVar("T")


class BusThread:
    """`with BusThread("user.anna") as bus` connects; `call` waits in a thread, `acall` in whatever event loop runs.

    Raises NoBroker, BusUnavailable on entering.
    """

    def __init__(self, identity: str = "user.local", *, settings: Settings | None = None) -> None:
        self._identity, self._settings = identity, settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mindbus", daemon=True)
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client, for what runs in `call` and `acall`."""
        if self._client is None:
            raise RuntimeError("the bus is not connected: enter it with `with`")
        return self._client

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work on the client; blocks."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("this is the thread of the bus: await instead")
        return self._begin(work).result()

    async def acall(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work on the client; a cancellation reaches it."""
        return await asyncio.wrap_future(self._begin(work))

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def __enter__(self) -> Self:
        async def open_client() -> Client:
            client = connect(self._identity, settings=self._settings)
            return await client.__aenter__()

        self._thread.start()
        try:
            self._client = self.call(open_client())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self.call(self._client.close())
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
