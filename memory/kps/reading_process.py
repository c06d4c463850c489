"""The process in which documents are read: frames in, frames out, until there are no more."""

import os
import resource
import sys
from types import TracebackType
from typing import IO

from pydantic_core import to_json

from memory.kps.formats import extract
from memory.kps.reader import LENGTH_BYTES, Answer
from mindbus.errors import Rejected


def _main() -> None:
    memory_bytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    # Whatever a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """A parser has stumbled; its process is replaced, so that nothing of it is left behind."""
        words = kind.__name__ if issubclass(kind, MemoryError) else f"{kind.__name__}: {error}{_place(trace)}"
        _write(answers, to_json(Answer(last_words=words[:500])))

    sys.excepthook = last_words
    # Ready: an empty frame.
    _write(answers, b"")
    while (content_type := _read(sys.stdin.buffer)) is not None:
        content = _read(sys.stdin.buffer)
        _write(answers, to_json(_answer(content or b"", content_type.decode())))


def _answer(content: bytes, content_type: str) -> Answer:
    try:
        return Answer(document=extract(content, content_type))
    except Rejected as no:
        return Answer(refusal=type(no).__name__, details=no.details)


def _place(trace: TracebackType | None) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"


def _read(stream: IO[bytes]) -> bytes | None:
    length = stream.read(LENGTH_BYTES)
    return stream.read(int.from_bytes(length)) if len(length) == LENGTH_BYTES else None


def _write(stream: IO[bytes], said: bytes) -> None:
    stream.write(len(said).to_bytes(LENGTH_BYTES) + said)
    stream.flush()


if __name__ == "__main__":
    _main()
