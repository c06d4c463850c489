"""Stands between a service and its PostgreSQL, cuts the line at a COMMIT."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum

from sqlalchemy.engine import URL, make_url

# As psycopg sends it: a simple query of its own.
_COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
_LATE_S = 0.3
_CHUNK_BYTES = 65536


class Fate(Enum):
    """What becomes of a COMMIT whose sender hears no answer."""

    LOST = "it never arrives"
    UNHEARD = "it is done, then the line is cut"
    LATE = "the line is cut, then it is done"


class CommitCutter:
    """Lets everything pass but the COMMITs that `fate_of`, given their number, has a fate for."""

    def __init__(self, server: URL, fate_of: Callable[[int], Fate | None]) -> None:
        self.server, self.fate_of = server, fate_of
        self.commits = 0
        self.cuts: list[Fate] = []
        self._lines: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        task.add_done_callback(self._lines.discard)
        try:
            line = _Line(reader, writer, *await asyncio.open_connection(self.server.host, self.server.port))
            fate = await line.carry(self._fate_of)
            if fate is not None:
                self.cuts.append(fate)
        except OSError:
            writer.transport.abort()

    async def close(self) -> None:
        """Cut every line."""
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    def _fate_of(self, chunk: bytes) -> Fate | None:
        if _COMMIT not in chunk:
            return None
        self.commits += 1
        return self.fate_of(self.commits)


@dataclass(frozen=True)
class _Line:
    requests: asyncio.StreamReader
    client: asyncio.StreamWriter
    answers: asyncio.StreamReader
    server: asyncio.StreamWriter

    async def carry(self, fate_of: Callable[[bytes], Fate | None]) -> Fate | None:
        """How it was cut, if it was."""
        back = asyncio.create_task(_pass_on(self.answers, self.client))
        try:
            while chunk := await self.requests.read(_CHUNK_BYTES):
                fate = fate_of(chunk)
                if fate is not None:
                    back.cancel()
                    await asyncio.gather(back, return_exceptions=True)
                    await self._cut(fate, chunk)
                    return fate
                self.server.write(chunk)
                await self.server.drain()
        finally:
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            for end in (self.client, self.server):
                end.transport.abort()
        return None

    async def _cut(self, fate: Fate, commit: bytes) -> None:
        if fate is Fate.LATE:
            self.client.transport.abort()
            await asyncio.sleep(_LATE_S)
        if fate is not Fate.LOST:
            self.server.write(commit)
            await self.answers.read(_CHUNK_BYTES)


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(_CHUNK_BYTES):
            target.write(chunk)
            await target.drain()
    target.transport.abort()


@asynccontextmanager
async def cutting(url: str, fate_of: Callable[[int], Fate | None]) -> AsyncIterator[tuple[str, CommitCutter]]:
    """The URL that leads through the cutter, with the cutter."""
    cutter = CommitCutter(make_url(url), fate_of)
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield cutter.server.set(host="127.0.0.1", port=port).render_as_string(hide_password=False), cutter
    finally:
        server.close()
        await cutter.close()
