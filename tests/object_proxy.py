"""Stands between storage and its object store, answers wrongly, late, or not at all."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from urllib.parse import parse_qs, urlsplit

_LATE_S = 1.0
_CHUNK_BYTES = 65536
_LARGEST_HEAD_BYTES = 65536


class Fault(Enum):
    """What becomes of a request; those of the second half are carried out all the same."""

    REFUSED = "500, nothing done"
    BUSY = "503 SlowDown, nothing done"
    CONFLICT = "409 ConditionalRequestConflict, nothing done"
    LOST = "cut before it arrives"
    FAILED = "500 after the effect"
    CUT = "cut after the effect"
    HALVED = "cut in the middle of the answer"
    LATE = "answered late"


_ERRORS = {
    Fault.REFUSED: (500, "InternalError"),
    Fault.FAILED: (500, "InternalError"),
    Fault.BUSY: (503, "SlowDown"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
}
_HAS_NO_EFFECT = (Fault.REFUSED, Fault.BUSY, Fault.CONFLICT, Fault.LOST)


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    target: str
    head: bytes
    body: bytes

    @property
    def operation(self) -> str:
        """What S3 calls it."""
        query = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        is_copy = b"x-amz-copy-source:" in self.head.lower()
        if "uploadId" in query:
            part = "upload_part_copy" if is_copy else "upload_part"
            by_method = {"GET": "list_parts", "PUT": part, "POST": "complete_multipart_upload"}
            return by_method.get(self.method, "abort_multipart_upload")
        if "uploads" in query:
            return "create_multipart_upload" if self.method == "POST" else "list_multipart_uploads"
        if "list-type" in query:
            return "list_objects_v2"
        put = "copy_object" if is_copy else "put_object"
        return {"GET": "get_object", "HEAD": "head_object", "PUT": put, "DELETE": "delete_object"}[self.method]


class ObjectProxy:
    """Passes every request on unchanged, `Host` included, since that is signed; but for what has a fault."""

    def __init__(self, server: str, fault_of: Callable[[Asked], Fault | None]) -> None:
        parts = urlsplit(server)
        self._host, self._port = str(parts.hostname), int(parts.port or 80)
        self._fault_of = fault_of
        self._lines: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then the line is closed."""
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        task.add_done_callback(self._lines.discard)
        try:
            asked = await _read(reader, writer)
            writer.write(await self._answer(asked, self._fault_of(asked)))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
        writer.transport.close()

    async def close(self) -> None:
        """Cut every line."""
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _answer(self, asked: Asked, fault: Fault | None) -> bytes:
        """Raises ConnectionAbortedError where there is none."""
        answer = b"" if fault in _HAS_NO_EFFECT else await self._carried_out(asked)
        if fault is Fault.LATE:
            await asyncio.sleep(_LATE_S)
        if fault in _ERRORS:
            return _error(*_ERRORS[fault], has_body=asked.method != "HEAD")
        if fault in (Fault.LOST, Fault.CUT):
            raise ConnectionAbortedError(fault.value)
        return answer[: len(answer) // 2] if fault is Fault.HALVED else answer

    async def _carried_out(self, asked: Asked) -> bytes:
        answers, server = await asyncio.open_connection(self._host, self._port)
        server.write(asked.head + asked.body)
        answer = await answers.read(-1)
        server.close()
        return answer


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    head = await reader.readuntil(b"\r\n\r\n")
    if re.search(rb"\r\nexpect: 100-continue\r\n", head, re.IGNORECASE):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = re.sub(rb"\r\nexpect: 100-continue(?=\r\n)", b"", head, flags=re.IGNORECASE)
    assert b"\r\ntransfer-encoding:" not in head.lower()
    length = re.search(rb"\r\ncontent-length: *([0-9]+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1])) if length else b""
    # The server is to close, so that its answer ends where the line does.
    head = re.sub(rb"\r\nconnection:[^\r]*", b"", head, flags=re.IGNORECASE)
    head = head[: -len(b"\r\n")] + b"Connection: close\r\n\r\n"
    method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
    return Asked(method, target, head, body)


def _error(status: int, code: str, *, has_body: bool) -> bytes:
    body = f"<Error><Code>{code}</Code><Message>by order of a test</Message></Error>".encode() if has_body else b""
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


@asynccontextmanager
async def meddling(server: str, fault_of: Callable[[Asked], Fault | None]) -> AsyncIterator[str]:
    """The address that leads through the proxy."""
    proxy = ObjectProxy(server, fault_of)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=_LARGEST_HEAD_BYTES)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        await proxy.close()
