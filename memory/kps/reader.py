"""Documents are read in a process apart, which a hostile one may bring down."""

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, JsonValue

from memory.kps import refusals
from memory.kps.document import Document
from memory.kps.refusals import CorruptDocument, DocumentTooLarge, TooMuchToRead
from mindbus.errors import Rejected
from mindbus.logs import logger

LENGTH_BYTES = 8
# Then it is replaced, whatever its libraries have kept of so many.
_DOCUMENTS_A_PROCESS = 200
_STARTS_WITHIN_S = 60.0
_LEAVES_WITHIN_S = 5.0


class Answer(BaseModel):
    """A document, or why there is none: a refusal by its name, else the last words of the process."""

    document: Document | None = None
    refusal: str | None = None
    details: dict[str, JsonValue] = {}
    last_words: str | None = None


@dataclass(frozen=True)
class Limits:
    """How much one document may be, may take."""

    max_bytes: int = 32 * 1024**2
    timeout_s: float = 60.0
    memory_bytes: int = 1024**3


class Reader:
    """Reads one document after the other; `close` it in the end."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._alone = asyncio.Lock()
        self._process: Process | None = None
        self._read = 0

    async def read(self, content: bytes, content_type: str) -> Document:
        """Its text with structure. Raises Rejected; OSError where no process can be started."""
        self.require_size(len(content))
        async with self._alone:
            answer = await self._exchange(content, content_type)
        if answer.document is not None:
            return answer.document
        if answer.refusal is not None:
            raise _refusal(answer.refusal, answer.details)
        logger().warning("reading process died", content_type=content_type, last_words=answer.last_words)
        if answer.last_words == MemoryError.__name__:
            raise TooMuchToRead(most_bytes=self._limits.memory_bytes)
        raise CorruptDocument(reason=answer.last_words)

    def require_size(self, size_bytes: int) -> None:
        """Raises DocumentTooLarge."""
        if size_bytes > self._limits.max_bytes:
            raise DocumentTooLarge(size_bytes=size_bytes, most=self._limits.max_bytes)

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_LEAVES_WITHIN_S):
                await process.wait()
        except TimeoutError:
            await _ended(process)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def _exchange(self, content: bytes, content_type: str) -> Answer:
        """Whatever ends it before the answer ends the process with it: nobody else must hear that answer."""
        if self._read >= _DOCUMENTS_A_PROCESS:
            await self.close()
        process = self._process = self._process or await self._start()
        self._read += 1
        answer = None
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                answer = await _asked(process, content, content_type)
        except TimeoutError:
            raise TooMuchToRead(timeout_s=self._limits.timeout_s) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            answer = Answer(last_words="it ended without a word")
        finally:
            if answer is None or answer.last_words is not None:
                self._process = None
                await _ended(process)
        return answer

    async def _start(self) -> Process:
        self._read = 0
        # Nothing of ours is in its environment: no addresses, no keys.
        environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
        command = (sys.executable, "-m", "memory.kps.reading_process", str(self._limits.memory_bytes))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        try:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                await _frame(process)
        except BaseException as trouble:
            await _ended(process)
            if isinstance(trouble, asyncio.IncompleteReadError | TimeoutError):
                raise OSError("the reading process does not start") from trouble
            raise
        return process


async def _ended(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _frame(process: Process) -> bytes:
    assert process.stdout is not None
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
    return await process.stdout.readexactly(length)


async def _asked(process: Process, content: bytes, content_type: str) -> Answer:
    assert process.stdin is not None
    for part in (content_type.encode(), content):
        process.stdin.write(len(part).to_bytes(LENGTH_BYTES))
        process.stdin.write(part)
    await process.stdin.drain()
    said = await _frame(process)
    return await asyncio.to_thread(Answer.model_validate_json, said)


def _refusal(name: str, details: dict[str, JsonValue]) -> Rejected:
    kind: type[Rejected] = getattr(refusals, name)
    refusal = kind()
    refusal.details |= details
    return refusal
