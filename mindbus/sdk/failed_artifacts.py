"""Artifacts of the local buffer that could not be registered: listed with their reasons, put back to be tried again."""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from mindbus.files.disk import Disk
from mindbus.sdk.buffer_folder import FAILED, REASON, BufferEntry, BufferFolder, bytes_path, entry_path


@dataclass(frozen=True)
class FailedArtifact:
    """An artifact that was set aside; `can_be_retried` is False where its entry cannot be read."""

    artifact_id: str
    owner: str
    reason: str
    set_aside_at: datetime
    size_bytes: int | None
    artifact_type: str | None
    can_be_retried: bool
    folder: Path


def failed_artifacts(buffer: Path) -> list[FailedArtifact]:
    """All of this machine's participants', the oldest first; `buffer` is the folder of their buffers."""
    return sorted(_failed_in(buffer), key=lambda each: each.set_aside_at)


def put_back(failed: FailedArtifact, disk: Disk | None = None) -> bool:
    """Move an artifact back into its owner's buffer; False where its entry cannot be read.

    The owner registers it when storage is next heard, at the latest when it starts again. Interrupted half-way, the
    artifact is set aside once more.
    """
    if not failed.can_be_retried:
        return False
    disk = disk or Disk()
    path = failed.folder.parent / secrets.token_hex(8)
    disk.make_folder(path)
    # Nobody else takes the folder before all of the artifact is in it.
    folder = BufferFolder.claim(path, disk)
    if folder is None:
        return False
    try:
        # The entry first: bytes without one would be removed as leftovers.
        disk.move(entry_path(failed.folder, failed.artifact_id), path)
        disk.move(bytes_path(failed.folder, failed.artifact_id), path)
        disk.remove(failed.folder / f"{failed.artifact_id}{REASON}")
    finally:
        folder.unlock()
    return True


def _failed_in(buffer: Path) -> Iterator[FailedArtifact]:
    for reason in buffer.glob(f"*/{FAILED}/*{REASON}"):
        artifact_id = reason.name.removesuffix(REASON)
        entry = _entry(entry_path(reason.parent, artifact_id))
        with suppress(FileNotFoundError):
            yield FailedArtifact(
                artifact_id=artifact_id,
                owner=reason.parent.parent.name,
                reason=reason.read_text(encoding="utf-8", errors="replace"),
                set_aside_at=datetime.fromtimestamp(reason.stat().st_mtime, UTC),
                size_bytes=entry.manifest.size_bytes if entry else None,
                artifact_type=entry.manifest.artifact_type if entry else None,
                can_be_retried=entry is not None and entry.artifact_id == artifact_id,
                folder=reason.parent,
            )


def _entry(path: Path) -> BufferEntry | None:
    try:
        return BufferEntry.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
