"""An artifact's bytes, written to a file or to standard output, with a progress bar."""

import codecs
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from bus_schema.artifacts import Manifest
from mindbus.cli.console import errors
from mindbus.cli.errors import UsageError
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.preview import MOST_BYTES, Preview, preview
from mindbus.sdk.transfers import ArtifactReader, Phase, ReadOptions, ReadRange, no_progress, save_to
from mindbus.sdk.transfers import Progress as Tell
from mindbus.terminal import escape_controls

_BINARY = "this is not text: say with -o where the bytes go, or look with `mindbus artifacts show ID --preview`"
_RANGE = re.compile(r"(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})")
_LONG_BYTES = 8 * 1024 * 1024
_PHASES: dict[Phase, str] = {
    "receive": "keeping it here",
    "send": "sending it",
    "register": "storage checks it",
    "read": "reading it",
}


def require_writable(output: Path | None) -> None:
    """Raises UsageError where bytes could not be written to that file, before any are fetched."""
    if output is None:
        return
    if output.is_dir():
        raise UsageError(f"{output} is a folder: name a file in it")
    if not output.parent.is_dir():
        raise UsageError(f"there is no folder {output.parent}: make it first, or write elsewhere")
    if not os.access(output.parent, os.W_OK):
        raise UsageError(f"{output.parent} is not yours to write to: write elsewhere")


async def fetch(
    artifacts: Artifacts, artifact_id: str, output: Path | None, **options: Unpack[ReadOptions]
) -> tuple[Manifest, ReadRange]:
    """To a file, or to standard output. Raises UsageError where a terminal would get what is not text."""
    async with artifacts.open(artifact_id, **options) as reader:
        if output is not None:
            await save_to(reader, output)
        elif sys.stdout.isatty():
            await _show(reader)
        else:
            await _write(reader)
        return reader.manifest, reader.byte_range


async def read_preview(
    artifacts: Artifacts, artifact_id: str, lines: int, trace: str | None
) -> tuple[Manifest, Preview]:
    """The beginning of it; as a whole, digest-checked, where it is short."""
    async with artifacts.open(artifact_id, trace=trace, length=MOST_BYTES) as reader:
        head = b"".join([piece async for piece in reader])
        return reader.manifest, preview(reader.manifest, head, lines)


async def _write(reader: ArtifactReader) -> None:
    async for piece in reader:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


async def _show(reader: ArtifactReader) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        async for piece in reader:
            text = decoder.decode(piece)
            if "\x00" in text:
                raise UsageError(_BINARY)
            sys.stdout.write(escape_controls(text))
        sys.stdout.write(escape_controls(decoder.decode(b"", final=True)))
    except UnicodeDecodeError as binary:
        raise UsageError(_BINARY) from binary
    sys.stdout.flush()


def parse_range(text: str | None) -> ReadOptions:
    """First and last byte, counted from 0; either may be left out: `500-`, or `-500` for the last 500.

    Raises UsageError.
    """
    if text is None:
        return {}
    match = _RANGE.fullmatch(text)
    first, last = (match["first"], match["last"]) if match else ("", "")
    if first and last and int(first) <= int(last):
        return {"start": int(first), "length": int(last) - int(first) + 1}
    if first and not last:
        return {"start": int(first)}
    if last and not first and int(last):
        return {"start": -int(last)}
    raise UsageError(f"{text!r} is not a range of bytes; write 0-1023, 1024- or -500")


@contextmanager
def progress_bar(*, is_wanted: bool) -> Iterator[Tell]:
    """On standard error, where that is a terminal, once something long is under way."""
    console = errors()
    if not is_wanted or not console.is_terminal:
        yield no_progress
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
    tasks = {}

    def report(phase: Phase, done_bytes: int, total_bytes: int | None) -> None:
        if phase not in tasks:
            if max(done_bytes, total_bytes or 0) < _LONG_BYTES:
                return
            tasks[phase] = bar.add_task(_PHASES[phase], total=total_bytes)
            bar.start()
        # What storage is at, it does not report before it is done.
        is_measured = phase != "register" or done_bytes > 0
        bar.update(tasks[phase], completed=done_bytes, total=total_bytes if is_measured else None)

    try:
        yield report
    finally:
        bar.stop()
