"""Bytes over a network that breaks off, to and from a store that answers as it likes."""

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.uploads import PresignedGet, PresignedPut
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import BytesMissing, StorageAway, StorageFailed
from mindbus.sdk.presigned_access import PresignedAccess
from mindbus.sdk.transfers import ByteStream
from tests.assignments import a_manifest
from tests.clocks import NOON

CONTENT = os.urandom(300_000)
# What stands in an address that nobody may see.
SECRET = "0123456789abcdef"
MANIFEST = a_manifest(CONTENT)

Answer = Callable[[int, int], bytes]


def whole(start: int, end: int) -> bytes:
    return _head("206 Partial Content", end - start) + CONTENT[start:end]


def cut_after(size_bytes: int) -> Answer:
    return lambda start, end: whole(start, end)[: start - end + size_bytes]


def says(status: str, code: str = "") -> Answer:
    body = f"<Error><Code>{code}</Code><SignatureProvided>{SECRET}</SignatureProvided></Error>".encode()
    return lambda _start, _end: _head(status, len(body)) + body


def _head(status: str, size_bytes: int) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {size_bytes}\r\nconnection: close\r\n\r\n".encode()


@dataclass
class Store:
    """Answers request after request as it is told; remembers what it was asked for."""

    answers: list[Answer]
    ranges: list[tuple[int, int]] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    url: str = ""
    asked: int = 0

    async def address_to_stage(self, manifest: Manifest) -> PresignedPut:
        self.asked += 1
        headers = {"content-length": str(manifest.size_bytes), "if-none-match": "*"}
        return PresignedPut(url=self.url, headers=headers, expires=NOON)

    async def address_to_read(self, artifact_id: str, trace: str | None) -> PresignedGet:
        self.asked += 1
        return PresignedGet(url=self.url, expires=NOON)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).decode()
        start, end = 0, len(CONTENT)
        if found := re.search(r"range: bytes=(\d+)-(\d+)", asked):
            start, end = int(found[1]), int(found[2]) + 1
            self.ranges.append((start, end))
        if asked.startswith("PUT"):
            self.received.append(await reader.readexactly(len(CONTENT)))
        writer.write(self.answers.pop(0)(start, end))
        await writer.drain()
        writer.close()


@asynccontextmanager
async def a_store(*answers: Answer) -> AsyncIterator[Store]:
    store = Store(list(answers))
    async with await asyncio.start_server(store.answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        store.url = f"http://127.0.0.1:{port}/bucket/key?X-Amz-Date=1&X-Amz-Signature={SECRET}"
        yield store
    assert store.answers == []


async def read(pieces: ByteStream) -> bytes:
    found = b""
    while piece := await pieces.read():
        found += piece
    await pieces.close()
    return found


async def test_what_breaks_off_is_read_on_from_there_under_a_fresh_address() -> None:
    async with a_store(cut_after(150_000), cut_after(100_000), whole) as store:
        content = await read(await PresignedAccess(store).open(MANIFEST, None))

    assert content == CONTENT
    assert store.asked == 3
    assert store.ranges == [(0, 300_000), (131_072, 300_000), (196_608, 300_000)]


async def test_a_part_is_asked_for_as_a_part() -> None:
    async with a_store(whole) as store:
        content = await read(await PresignedAccess(store).open(MANIFEST, None, 1000, 500))

    assert content == CONTENT[1000:1500]
    assert store.ranges == [(1000, 1500)]


async def test_beyond_the_end_there_is_nothing_to_ask_for() -> None:
    async with a_store() as store:
        assert await read(await PresignedAccess(store).open(MANIFEST, None, len(CONTENT))) == b""

    assert store.asked == 0


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([says("404 Not Found", "NoSuchKey")], BytesMissing),
        ([says("403 Forbidden", "AccessDenied")] * 3, StorageAway),
        ([says("500 Internal Server Error")] * 3, StorageAway),
        ([says("200 OK")] * 3, StorageAway),
        ([lambda _start, _end: b"no HTTP at all\r\n\r\n"] * 3, StorageAway),
    ],
)
async def test_what_cannot_be_read_is_told_without_the_address(
    answers: list[Answer], expected: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_store(*answers) as store:
        with pytest.raises(expected) as failure:
            await PresignedAccess(store).open(MANIFEST, None)

    told = f"{failure.value} {failure.value.__cause__!r} {caplog.text}"
    assert SECRET not in told
    assert "X-Amz" not in told


@pytest.mark.parametrize(
    "answers",
    [
        [says("200 OK")],
        [says("412 Precondition Failed", "PreconditionFailed")],
        [says("403 Forbidden", "AccessDenied"), says("200 OK")],
        [says("400 Bad Request", "ExpiredToken"), says("200 OK")],
    ],
)
async def test_what_is_sent_arrives_once_or_was_there_before(tmp_path: Path, answers: list[Answer]) -> None:
    async with a_store(*answers) as store:
        entry, source = an_entry(tmp_path)
        await PresignedAccess(store).stage(entry, source)

    assert store.received == [CONTENT] * len(answers)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([says("400 Bad Request", "BadDigest")], StorageFailed),
        ([says("403 Forbidden", "SignatureDoesNotMatch")] * 2, StorageAway),
        ([says("503 Slow Down", "SlowDown")], StorageAway),
        ([says("404 Not Found", "NoSuchBucket")], StorageAway),
        ([says("307 Temporary Redirect")], StorageAway),
    ],
)
async def test_what_cannot_be_sent_is_told_without_the_address(
    tmp_path: Path, answers: list[Answer], expected: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_store(*answers) as store:
        entry, source = an_entry(tmp_path)
        with pytest.raises(expected) as failure:
            await PresignedAccess(store).stage(entry, source)

    assert SECRET not in f"{failure.value} {failure.value.__cause__!r} {caplog.text}"
    assert "HTTP Request: PUT" in caplog.text


async def test_where_nobody_listens_storage_counts_as_away(tmp_path: Path) -> None:
    async with a_store() as store:
        pass
    entry, source = an_entry(tmp_path)

    with pytest.raises(StorageAway) as failure:
        await PresignedAccess(store).stage(entry, source)

    assert "MINDBUS_S3_PUBLIC_ENDPOINT_URL" in str(failure.value)
    assert SECRET not in str(failure.value)


def an_entry(folder: Path) -> tuple[BufferEntry, Path]:
    source = folder / "source.bytes"
    source.write_bytes(CONTENT)
    return BufferEntry(manifest=MANIFEST, upload_key=MANIFEST.uri, buffered_at=NOON), source
