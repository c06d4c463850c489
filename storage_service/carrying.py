"""One file from folder to folder, whichever disk they are on."""

import errno
import os
import stat
import uuid

from storage_service.blobs import CHUNK_BYTES

# Without O_NONBLOCK, opening a pipe that nobody writes to would hang for ever.
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def carry(source: tuple[int, str], target: tuple[int, str]) -> None:
    """Move a name in a folder to another, whole at every moment; what lies on another disk is left for its remover."""
    try:
        os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])
    except OSError as trouble:
        if trouble.errno != errno.EXDEV:
            raise
        _copy(source, target)


def _copy(source: tuple[int, str], target: tuple[int, str]) -> None:
    """To another file system: whole under another name first, so that nobody takes a half for it."""
    part = f".{uuid.uuid4().hex}.part"
    # A link or a pipe is nothing to keep.
    if not stat.S_ISREG(os.stat(source[1], dir_fd=source[0], follow_symlinks=False).st_mode):
        return
    with (
        os.fdopen(os.open(source[1], PLAIN, dir_fd=source[0]), "rb", buffering=0) as reader,
        os.fdopen(os.open(part, NEW, 0o440, dir_fd=target[0]), "wb") as writer,
    ):
        while chunk := reader.read(CHUNK_BYTES):
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
    os.rename(part, target[1], src_dir_fd=target[0], dst_dir_fd=target[0])
