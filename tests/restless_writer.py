"""An agent that cannot leave alone what it has staged: writes to it without end, then as if nothing had been.

Run as a program, so that it writes while whoever reads does not wait for it: WAY PATH CONTENT OTHER, all but the first
of them files. The path has its right bytes now and then for some milliseconds, else anything.
"""

import mmap
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

_CALM_S, _STORM_S = 0.012, 0.004
_BLOCK = 64 * 1024
# What it does once: leaves the path wrong, or half wrong, until it is called with the right bytes.
Stroke = Callable[[bytes], None]


def flipping(path: Path, right: bytes) -> Stroke:
    """Single bytes, through a descriptor that was opened long ago."""
    file = os.open(path, os.O_WRONLY)

    def stroke(content: bytes) -> None:
        position = random.randrange(len(right))
        os.pwrite(file, content[position : position + 1], position)
        if content is right:
            os.pwrite(file, right, 0)

    return stroke


def mapping(path: Path, right: bytes) -> Stroke:
    """Whole blocks, through memory that is the file."""
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), len(right))

    def stroke(content: bytes) -> None:
        if content is right:
            mapped[:] = right
        else:
            start = random.randrange(0, len(right), _BLOCK)
            mapped[start : start + _BLOCK] = content[start : start + _BLOCK]

    return stroke


def rewriting(path: Path, _right: bytes) -> Stroke:
    """From the beginning, by way of an empty file."""
    return lambda content: _ignore(path.write_bytes(content))


def replacing(path: Path, _right: bytes) -> Stroke:
    """With another file of the same name."""
    beside = path.with_name("beside")

    def stroke(content: bytes) -> None:
        beside.write_bytes(content)
        beside.replace(path)

    return stroke


def removing(path: Path, _right: bytes) -> Stroke:
    """Away, then there again."""

    def stroke(content: bytes) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(content)

    return stroke


def linking(path: Path, right: bytes) -> Stroke:
    """Not a file of its own, at any moment, but one to which there is another way in."""
    secret = path.with_name("secret")
    secret.write_bytes(right)

    def stroke(_content: bytes) -> None:
        path.unlink(missing_ok=True)
        path.hardlink_to(secret)

    stroke(right)
    for number in range(4):
        Thread(target=_keep_journal_busy, args=(path.with_name(f"journal_{number}"),), daemon=True).start()
    return stroke


def _keep_journal_busy(path: Path) -> None:
    """Removing a name takes its time while the disk's journal is written."""
    while True:
        with path.open("wb", buffering=0) as file:
            file.write(b"journal")
            os.fsync(file.fileno())
        path.unlink()


WAYS = {way.__name__: way for way in (flipping, mapping, rewriting, replacing, removing, linking)}


def _ignore(_written: int) -> None: ...


def _write_for_ever(way: str, path: Path, right: bytes, wrong: bytes) -> None:
    stroke = WAYS[way](path, right)
    print("writing", flush=True)
    while True:
        time.sleep(random.uniform(0, _CALM_S))
        ends = time.monotonic() + random.uniform(0, _STORM_S)
        while time.monotonic() < ends:
            stroke(random.choice((wrong, wrong + b"longer", wrong[:-1])) if way != "mapping" else wrong)
        stroke(right)


if __name__ == "__main__":
    _write_for_ever(sys.argv[1], Path(sys.argv[2]), *(Path(file).read_bytes() for file in sys.argv[3:]))
