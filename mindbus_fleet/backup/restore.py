"""Restore of a backup into an empty data folder."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy.engine import URL

from config.settings import FleetSettings
from mindbus.files.disk import keep_private, write_private
from mindbus.files.store import open_files
from mindbus.run_dir import RESTORED
from mindbus_fleet.backup import postgresql, redis_dump, sqlite_copies
from mindbus_fleet.backup.copies import (
    COPIES,
    MANIFEST,
    BackupManifest,
    Progress,
    dump_of,
    folders_beside,
    require_in_folder,
)
from mindbus_fleet.backup.errors import BackupFailed
from mindbus_fleet.backup.repository import BackupSnapshot, Repository

# What was under way in the broker at the time of the backup had been sent within these: a step may take half an hour.
_SENT_WITHIN = timedelta(hours=2)
_ORCHESTRATOR = "orchestrator.db"


@dataclass(frozen=True)
class Restored:
    """Result of a restore; `sent_again` are messages that the broker may have held."""

    manifest: BackupManifest
    sent_again: int


class Restore:
    """Brings back a snapshot; nothing of the data folder is changed before all of it is verified."""

    def __init__(self, settings: FleetSettings, repository: Repository, say: Progress) -> None:
        self._settings, self._repository, self._say = settings, repository, say
        self._unpacked = settings.data_dir / "restoring"

    def run(self, snapshot: BackupSnapshot) -> Restored:
        """Fetch, verify and put in place. Raises BackupFailed."""
        self._require_empty()
        keep_private(self._unpacked)
        try:
            self._say(f"fetching backup {snapshot.short_id}")
            self._repository.restore(snapshot, self._unpacked)
            copies = self._copies()
            manifest = self._verified(copies)
            self._load_servers(copies, manifest)
            self._move(copies, manifest)
        finally:
            shutil.rmtree(self._unpacked, ignore_errors=True)
        return Restored(manifest, self._send_again(manifest))

    def _require_empty(self) -> None:
        require_in_folder(self._settings)
        data_dir = self._settings.data_dir
        if data_dir.is_dir() and (found := sqlite_copies.databases_in(data_dir)):
            raise BackupFailed(
                f"{data_dir} has data already ({found[0].name}): name another MINDBUS_DATA_DIR, or move it away"
            )
        for database in postgresql.databases_of(self._settings).values():
            postgresql.require_empty(database)
        if self._settings.redis_url:
            redis_dump.require_empty(self._settings.redis_url)

    def _copies(self) -> Path:
        found = next(self._unpacked.rglob(f"{COPIES}/{MANIFEST}"), None)
        if found is None:
            raise BackupFailed("the backup has no manifest; it was not made by `mindbus backup`")
        return found.parent

    def _verified(self, copies: Path) -> BackupManifest:
        """The manifest, once every database is as it says."""
        manifest = BackupManifest.model_validate_json((copies / MANIFEST).read_bytes())
        for each in manifest.databases:
            copy = copies / "databases" / each.path
            if not copy.is_file() or sqlite_copies.digest_of(copy) != each.sha256:
                raise BackupFailed(f"{each.path} in the backup is not what was backed up")
            if trouble := sqlite_copies.check(copy):
                raise BackupFailed(f"{each.path} was damaged when it was backed up: {trouble}")
        for source, _ in self._folders(manifest):
            if source.is_symlink():
                self._say(f"{source.name} was a link when it was backed up: the backup has none of its files")
        self._dumps(manifest)
        if manifest.keys is not None and not self._settings.redis_url:
            raise BackupFailed("the backup has keys of a Redis: set MINDBUS_REDIS_URL")
        if (manifest.objects is None) != (open_files(self._settings).local_root is not None):
            raise BackupFailed(
                "the backup's artifacts lie in a bucket, or in a folder: set MINDBUS_ARTIFACTS_URL alike"
            )
        return manifest

    def _folders(self, manifest: BackupManifest) -> list[tuple[Path, Path]]:
        """The unpacked folders of files that never change, each with its place."""
        beside = folders_beside(self._settings)
        return [
            (self._unpacked / os.path.normpath(path).lstrip("/"), beside[name])
            for name, path in manifest.folders.items()
            if name in beside
        ]

    def _dumps(self, manifest: BackupManifest) -> dict[str, URL]:
        """The dumps, each with the database that the same setting names now. Raises BackupFailed."""
        databases = postgresql.databases_of(self._settings)
        dumps = {dump_of(name): database for name, database in databases.items()}
        if "0.dump" in manifest.postgresql and len(dumps) == len(manifest.postgresql):
            # Earlier ones were numbered in the order of the URLs.
            in_order = sorted(dumps.values(), key=lambda url: url.render_as_string(hide_password=False))
            return dict(zip(manifest.postgresql, in_order, strict=True))
        if dumps.keys() != set(manifest.postgresql):
            have, wanted = ([name.removesuffix(".dump") for name in names] for names in (manifest.postgresql, dumps))
            raise BackupFailed(
                f"the backup has PostgreSQL databases of {_settings(have)}, now {_settings(wanted)}: "
                "set them as they were"
            )
        return dumps

    def _load_servers(self, copies: Path, manifest: BackupManifest) -> None:
        for name, database in self._dumps(manifest).items():
            self._say(f"loading the database {database.database}")
            postgresql.load(database, copies / "postgresql" / name)
        if manifest.keys is not None and self._settings.redis_url:
            redis_dump.load(self._settings.redis_url, copies / "redis.jsonl")
        if manifest.objects is not None:
            self._say(f"storing {manifest.objects} objects")
            store, mirror = open_files(self._settings), copies / "objects"
            for path in sorted(each for each in mirror.rglob("*") if each.is_file()):
                store.upload(str(path.relative_to(mirror)), path)

    def _move(self, copies: Path, manifest: BackupManifest) -> None:
        """Put files in place, the databases last: without them the folder still counts as empty."""
        data_dir = self._settings.data_dir
        for source, folder in self._folders(manifest):
            # Behind a link lie the files of the fleet that was backed up.
            if not source.is_symlink():
                _merge(source, folder)
        _merge(copies / "buffer", data_dir / "buffer")
        _merge(copies / "databases", data_dir)

    def _send_again(self, manifest: BackupManifest) -> int:
        """Have sent once more what may have been on its way; the orchestrator does so itself, by its runs."""
        since = manifest.taken_at - _SENT_WITHIN
        names = [each.path for each in manifest.databases if each.path != _ORCHESTRATOR]
        again = sqlite_copies.forget_sending(
            (self._settings.data_dir / name for name in names), since.strftime("%Y-%m-%d %H:%M:%S.%f")
        )
        again += sum(
            postgresql.forget_sending(each, since.isoformat())
            for each in postgresql.databases_of(self._settings).values()
        )
        write_private(self._settings.data_dir / RESTORED, manifest.taken_at.isoformat())
        return again


def _settings(names: Sequence[str]) -> str:
    return " and ".join(f"MINDBUS_{name.upper()}" for name in names) or "no setting"


def _merge(source: Path, target: Path) -> None:
    """Move the files of a folder into another on the same disk."""
    if not source.is_dir():
        return
    for path in sorted(source.rglob("*")):
        to = target / path.relative_to(source)
        if path.is_dir():
            to.mkdir(parents=True, exist_ok=True)
        else:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, to)
