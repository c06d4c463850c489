"""Document extraction in a separate process, which a hostile document may bring down."""

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, JsonValue

import memory.kps.document
from memory.kps.document import CorruptDocument, Document, DocumentTooLarge, ExtractionTooLarge
from mindbus.errors import Rejected
from mindbus.logs import logger

LENGTH_BYTES = 8
# Then it is replaced, whatever its libraries have kept of so many.
_DOCUMENTS_A_PROCESS = 200
_STARTS_WITHIN_S = 60.0
_LEAVES_WITHIN_S = 5.0


class ExtractionResult(BaseModel):
    """A document, the class name of the error it was rejected with, or how the process crashed."""

    document: Document | None = None
    error: str | None = None
    details: dict[str, JsonValue] = {}
    crash: str | None = None


@dataclass(frozen=True)
class ExtractionLimits:
    """Bytes of one document, seconds and bytes of memory that its extraction may take."""

    max_bytes: int = 32 * 1024**2
    timeout_s: float = 60.0
    memory_bytes: int = 1024**3


class DocumentExtractor:
    """Extracts one document after the other; `close` it in the end."""

    def __init__(self, limits: ExtractionLimits | None = None) -> None:
        self._limits = limits or ExtractionLimits()
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._documents = 0

    async def read(self, content: bytes, content_type: str) -> Document:
        """Text of a document with its structure. Raises Rejected; OSError where no process can be started."""
        self.require_size(len(content))
        async with self._lock:
            answer = await self._exchange(content, content_type)
        if answer.document is not None:
            return answer.document
        if answer.error is not None:
            raise _rejection(answer.error, answer.details)
        logger().warning("extraction process crashed", content_type=content_type, crash=answer.crash)
        if answer.crash == MemoryError.__name__:
            raise ExtractionTooLarge(most_bytes=self._limits.memory_bytes)
        raise CorruptDocument(reason=answer.crash)

    def require_size(self, size_bytes: int) -> None:
        """Raises DocumentTooLarge."""
        if size_bytes > self._limits.max_bytes:
            raise DocumentTooLarge(size_bytes=size_bytes, most=self._limits.max_bytes)

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_LEAVES_WITHIN_S):
                await process.wait()
        except TimeoutError:
            await _wait_for_exit(process)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def _exchange(self, content: bytes, content_type: str) -> ExtractionResult:
        """Send one document, wait for its result; a wait cut short ends the process, lest the next gets the result."""
        if self._documents >= _DOCUMENTS_A_PROCESS:
            await self.close()
        process = self._process = self._process or await self._start()
        self._documents += 1
        answer = None
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                answer = await _exchange_frames(process, content, content_type)
        except TimeoutError:
            raise ExtractionTooLarge(timeout_s=self._limits.timeout_s) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            answer = ExtractionResult(crash="it ended without an answer")
        finally:
            if answer is None or answer.crash is not None:
                self._process = None
                await _wait_for_exit(process)
        return answer

    async def _start(self) -> Process:
        self._documents = 0
        # Nothing of ours is in its environment: no addresses, no keys.
        environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
        command = (sys.executable, "-m", "memory.kps.extraction_process", str(self._limits.memory_bytes))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        try:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                await _frame(process)
        except BaseException as error:
            await _wait_for_exit(process)
            if isinstance(error, asyncio.IncompleteReadError | TimeoutError):
                raise OSError("the extraction process does not start") from error
            raise
        return process


async def _wait_for_exit(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _frame(process: Process) -> bytes:
    assert process.stdout is not None
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
    return await process.stdout.readexactly(length)


async def _exchange_frames(process: Process, content: bytes, content_type: str) -> ExtractionResult:
    assert process.stdin is not None
    for part in (content_type.encode(), content):
        process.stdin.write(len(part).to_bytes(LENGTH_BYTES))
        process.stdin.write(part)
    await process.stdin.drain()
    result = await _frame(process)
    return await asyncio.to_thread(ExtractionResult.model_validate_json, result)


def _rejection(name: str, details: dict[str, JsonValue]) -> Rejected:
    kind: type[Rejected] = getattr(memory.kps.document, name)
    rejection = kind()
    rejection.details |= details
    return rejection
