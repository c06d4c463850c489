"""Files that only this user may read."""

import os
import socket
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Write a file with mode 0600 atomically: a reader sees all of it or the one before."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{socket.gethostname()}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as sink:
        sink.write(text)
    part.replace(file)
