"""A way to a server that counts what goes there, and can be cut."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_PIECE_BYTES = 64 * 1024


class MeteredLink:
    """Passes bytes both ways; `after` so many, counted from now, it does something, once."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._host, self._port = parts.hostname, parts.port
        self._open: set[asyncio.StreamWriter] = set()
        self._then: tuple[int, Callable[[], object]] | None = None
        self.sent_bytes = 0
        self.is_cut = False
        self.url = ""

    def after(self, sent_bytes: int, then: Callable[[], object]) -> None:
        self._then = self.sent_bytes + sent_bytes, then

    def cut(self) -> None:
        """Nothing passes any more, in the middle of whatever it was."""
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self.is_cut = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        there_reader, there = await asyncio.open_connection(self._host, self._port)
        self._open |= {writer, there}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, there, self._count))
                group.create_task(self._pass(there_reader, writer, lambda _size: None))
        except* OSError:
            pass
        finally:
            self._open -= {writer, there}
            for each in (writer, there):
                each.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[int], None]
    ) -> None:
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
            count(len(piece))
        if writer.can_write_eof():
            writer.write_eof()

    def _count(self, size_bytes: int) -> None:
        self.sent_bytes += size_bytes
        if self._then is not None and self.sent_bytes >= self._then[0]:
            (_at, then), self._then = self._then, None
            then()


@asynccontextmanager
async def metered_link(target: str) -> AsyncIterator[MeteredLink]:
    """A link to the server at an HTTP address, on a port of loopback."""
    link = MeteredLink(target)
    server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
    link.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield link
    finally:
        server.close()
        link.cut()
