"""The opened global memory, shared by the routers of the worker."""

from collections.abc import Awaitable, Callable

from memory.glm.service import GlobalMemory

_CATCH_UP_WITHIN_S = 5.0


class CurrentMemory:
    """Holds the memory that answers now; it is opened anew at each start and after a change of the embedding model."""

    def __init__(self, open_memory: Callable[[], Awaitable[GlobalMemory]]) -> None:
        self._open_memory = open_memory
        self._opened: GlobalMemory | None = None

    @property
    def memory(self) -> GlobalMemory:
        """The opened memory. Raises RuntimeError before `open`."""
        if self._opened is None:
            raise RuntimeError("the global memory is not open")
        return self._opened

    async def open(self) -> None:
        """Close what was open, open it anew. Raises what `open_memory` raises."""
        await self.close()
        self._opened = await self._open_memory()

    async def close(self) -> None:
        """Close it, if it is open."""
        if self._opened is not None:
            await self._opened.close()

    async def replace(self) -> None:
        """Answer from the memory as it is after a migration, clear the older index."""
        older, self._opened = self.memory, await self._open_memory()
        older.notify()
        await older.index_sync.catch_up(_CATCH_UP_WITHIN_S)
        await older.index.clear()
        await older.close()
        await self.memory.relay.reconcile()
