"""An artifact's bytes on their way out of the command line."""

import codecs
import sys
from pathlib import Path
from typing import Unpack

from bus_schema.artifacts import Manifest
from mindbus.cli.errors import UsageError
from mindbus.sdk.artifacts import Artifacts, ReadOptions
from mindbus.sdk.preview import MOST_BYTES, Preview, preview
from mindbus.sdk.reader import ArtifactReader, ByteRange, save_to
from mindbus.terminal import escape_controls

_BINARY = "this is no text: say with -o where the bytes go, or look with `mindbus artifacts show ID --preview`"


async def fetch(
    artifacts: Artifacts, artifact_id: str, output: Path | None, **wanted: Unpack[ReadOptions]
) -> tuple[Manifest, ByteRange]:
    """To a file, or to standard output. Raises UsageError where a terminal would get what is no text."""
    async with artifacts.open(artifact_id, **wanted) as reader:
        if output is not None:
            await save_to(reader, output)
        elif sys.stdout.isatty():
            await _show(reader)
        else:
            await _write(reader)
        return reader.manifest, reader.byte_range


async def look(artifacts: Artifacts, artifact_id: str, lines: int, trace: str | None) -> tuple[Manifest, Preview]:
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
