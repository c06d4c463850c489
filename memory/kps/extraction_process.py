"""The extraction process: documents in as frames, results out, until its input ends."""

import os
import resource
import sys
from types import TracebackType
from typing import IO

from pydantic_core import to_json

from memory.kps.extractor import LENGTH_BYTES, ExtractionResult
from memory.kps.formats import extract
from mindbus.errors import Rejected


def _main() -> None:
    memory_bytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    # Whatever a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Tell which exception of a parser ends this process; it is replaced, so that nothing of it is left behind."""
        reason = kind.__name__ if issubclass(kind, MemoryError) else f"{kind.__name__}: {error}{_place(trace)}"
        _write(answers, to_json(ExtractionResult(crash=reason[:500])))

    sys.excepthook = report_crash
    # Ready: an empty frame.
    _write(answers, b"")
    while (content_type := _read(sys.stdin.buffer)) is not None:
        content = _read(sys.stdin.buffer)
        _write(answers, to_json(_answer(content or b"", content_type.decode())))


def _answer(content: bytes, content_type: str) -> ExtractionResult:
    try:
        return ExtractionResult(document=extract(content, content_type))
    except Rejected as error:
        return ExtractionResult(error=type(error).__name__, details=error.details)


def _place(trace: TracebackType | None) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"


def _read(stream: IO[bytes]) -> bytes | None:
    length = stream.read(LENGTH_BYTES)
    return stream.read(int.from_bytes(length)) if len(length) == LENGTH_BYTES else None


def _write(stream: IO[bytes], frame: bytes) -> None:
    stream.write(len(frame).to_bytes(LENGTH_BYTES) + frame)
    stream.flush()


if __name__ == "__main__":
    _main()
