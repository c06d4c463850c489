"""TCP proxy that delays, withholds or cuts what passes, like a bad network."""

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_CHUNK_BYTES = 64 * 1024
# On, for no time: closing then sends a RST.
_ABORTIVE = struct.pack("ii", 1, 0)


class FaultyLink:
    """Connections to one server; what is withheld arrives when it is let through again, as TCP would resend it."""

    def __init__(self, host: str, port: int, chance: random.Random) -> None:
        self._server, self._chance = (host, port), chance
        self._to_server, self._to_client = asyncio.Event(), asyncio.Event()
        self._lines: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = {}
        self._most_bytes: int | None = None
        self.port = 0
        self.latency_s = 0.0
        self.cuts = 0
        self.heal()

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._lines)

    def withhold(self, *, to_server: bool = True, to_client: bool = True) -> None:
        """Let nothing pass in these directions, connections stay open."""
        for passes, is_withheld in ((self._to_server, to_server), (self._to_client, to_client)):
            passes.clear() if is_withheld else passes.set()

    def cut_after(self, most_bytes: int) -> None:
        """Reset every connection from now on once a random number of bytes, at most so many, has passed."""
        self._most_bytes = most_bytes
        self.reset()

    def heal(self) -> None:
        """Let everything pass at once."""
        self._to_server.set()
        self._to_client.set()
        self.latency_s, self._most_bytes = 0.0, None

    def reset(self) -> int:
        """Send a RST to both ends of every connection; returns how many there were."""
        lines = list(self._lines.values())
        for ends in lines:
            for end in ends:
                _abort(end)
        self.cuts += len(lines)
        return len(lines)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        task = asyncio.current_task()
        assert task is not None
        try:
            await self._to_server.wait()
            answers, server = await asyncio.open_connection(*self._server)
        except OSError:
            _abort(writer)
            return
        self._lines[task] = writer, server
        budget = _Budget(self._chance.randint(1, self._most_bytes) if self._most_bytes else None)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, server, self._to_server, budget))
                group.create_task(self._pass(answers, writer, self._to_client, budget))
        except* (OSError, _Spent, asyncio.CancelledError):
            pass
        finally:
            del self._lines[task]
            self.cuts += budget.is_spent
            for end in (writer, server):
                _abort(end)

    async def close(self) -> None:
        """Cut every connection."""
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, passes: asyncio.Event, budget: "_Budget"
    ) -> None:
        while chunk := await source.read(_CHUNK_BYTES):
            if self.latency_s:
                # Chunks that come meanwhile wait behind it: together they are as late as the first.
                await asyncio.sleep(self.latency_s)
            await passes.wait()
            target.write(chunk[: budget.take(len(chunk))])
            await target.drain()
            budget.check()
        raise ConnectionResetError("one side has ended it")


class _Spent(Exception):
    pass


class _Budget:
    """How many bytes a connection may still carry; None: as many as it likes."""

    def __init__(self, left: int | None) -> None:
        self._left = left

    @property
    def is_spent(self) -> bool:
        return self._left is not None and self._left <= 0

    def take(self, size: int) -> int:
        if self._left is None:
            return size
        taken = min(size, self._left)
        self._left -= taken
        return taken

    def check(self) -> None:
        if self.is_spent:
            raise _Spent


def _abort(end: asyncio.StreamWriter) -> None:
    opened = end.get_extra_info("socket")
    with suppress(OSError):
        if opened is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTIVE)
    end.transport.abort()


@asynccontextmanager
async def faulty_link(host: str, port: int, chance: random.Random) -> AsyncIterator[FaultyLink]:
    """A link to a server, listening on a port of loopback."""
    link = FaultyLink(host, port, chance)
    server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
    link.port = server.sockets[0].getsockname()[1]
    try:
        yield link
    finally:
        server.close()
        await link.close()
