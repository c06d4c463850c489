"""Consistent copies of everything that a fleet keeps, in a folder that a repository takes in."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from config.settings import FleetSettings
from mindbus.files.disk import keep_private
from mindbus.files.store import FileStore, open_files
from mindbus.version import __version__
from mindbus_fleet.backup import postgresql, redis_dump, sqlite_copies
from mindbus_fleet.backup.errors import BackupFailed

COPIES = "backup"
MANIFEST = "manifest.json"
# Beside the databases: what agents have not handed over yet. It is copied first, so that it is in one of the two.
_BUFFER = "buffer"

Progress = Callable[[str], None]


class DatabaseCopy(BaseModel):
    """A copied SQLite database, its path relative to the data folder."""

    model_config = ConfigDict(frozen=True)
    path: str
    sha256: str
    rows: dict[str, int]


class BackupManifest(BaseModel):
    """Contents of a backup; `objects` are those of a bucket, `keys` those of Redis."""

    model_config = ConfigDict(frozen=True)
    format: Literal["mindbus-backup"] = "mindbus-backup"
    version: Literal[1] = 1
    mindbus: str = __version__
    taken_at: AwareDatetime
    databases: tuple[DatabaseCopy, ...] = ()
    postgresql: tuple[str, ...] = ()
    keys: int | None = None
    objects: int | None = None
    folders: dict[str, str] = Field(
        default_factory=dict, description="Where the folders lay that are beside the copies."
    )


@dataclass(frozen=True)
class Copies:
    """Copies of what a data folder holds, for as long as a backup takes; those of a bucket's objects stay."""

    settings: FleetSettings
    say: Progress

    @property
    def folder(self) -> Path:
        return self.settings.data_dir / COPIES

    def make(self) -> BackupManifest:
        """Copy what changes, all databases as of one instant; artifacts in a folder stay where they are.

        Raises BackupFailed.
        """
        require_in_folder(self.settings)
        keep_private(self.folder)
        # One that was killed has left its own.
        self.remove()
        _copy_folder(self.settings.data_dir / _BUFFER, self.folder / _BUFFER)
        taken_at = datetime.now(UTC)
        databases = self._copy_databases()
        dumps = self._dump_postgresql()
        redis = self.settings.redis_url
        keys = redis_dump.dump(redis, self.folder / "redis.jsonl") if redis else None
        store = open_files(self.settings)
        manifest = BackupManifest(
            taken_at=taken_at,
            databases=databases,
            postgresql=dumps,
            keys=keys,
            objects=self._mirror(store) if store.local_root is None else None,
            # Of a link, a repository takes the link alone.
            folders={name: str(folder.resolve()) for name, folder in folders_beside(self.settings).items()},
        )
        (self.folder / MANIFEST).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
        return manifest

    def paths(self, manifest: BackupManifest) -> list[Path]:
        """Folders that belong to the backup."""
        return [self.folder.resolve(), *(path for each in manifest.folders.values() if (path := Path(each)).is_dir())]

    def remove(self) -> None:
        """Delete the copies: what somebody has forgotten must not live on in them."""
        for name in ("databases", "postgresql", _BUFFER):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("redis.jsonl", MANIFEST):
            (self.folder / name).unlink(missing_ok=True)

    def _copy_databases(self) -> tuple[DatabaseCopy, ...]:
        data_dir, vectors = self.settings.data_dir, self.settings.vectors_folder
        found = sqlite_copies.databases_in(data_dir)
        if vectors.is_dir() and vectors.is_relative_to(data_dir):
            found += sqlite_copies.databases_in(vectors)
        targets = {path: self.folder / "databases" / path.relative_to(data_dir) for path in found}
        for target in targets.values():
            target.parent.mkdir(parents=True, exist_ok=True)
        self.say(f"copying {len(found)} databases")
        sqlite_copies.copy_together(targets)
        return tuple(
            DatabaseCopy(
                path=str(path.relative_to(data_dir)),
                sha256=sqlite_copies.digest_of(target),
                rows=sqlite_copies.count_rows(target),
            )
            for path, target in targets.items()
        )

    def _dump_postgresql(self) -> tuple[str, ...]:
        databases = postgresql.databases_of(self.settings)
        for name, database in databases.items():
            self.say(f"dumping the database {database.database}")
            (self.folder / "postgresql").mkdir(exist_ok=True)
            postgresql.dump(database, self.folder / "postgresql" / dump_of(name))
        return tuple(map(dump_of, databases))

    def _mirror(self, store: FileStore) -> int:
        """Fetch the objects of a bucket that are not here yet, drop those that are there no more."""
        mirror = self.folder / "objects"
        root = self.settings.files_url.partition("://")[2]
        keys = {path.removeprefix(root).lstrip("/"): path for path in store.fs.find(root)}
        here = (
            {str(each.relative_to(mirror)) for each in mirror.rglob("*") if each.is_file()}
            if mirror.is_dir()
            else set()
        )
        new = sorted(keys.keys() - here)
        self.say(f"fetching {len(new)} objects")
        for key in new:
            target = mirror / key
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f"{target.name}.part")
            try:
                store.fs.get_file(keys[key], str(part))
            except FileNotFoundError:
                # Staged objects are there for seconds: it has been stored, or removed, since they were listed.
                part.unlink(missing_ok=True)
                continue
            part.replace(target)
            here.add(key)
        for key in here - keys.keys():
            (mirror / key).unlink()
        return len(here & keys.keys())


def dump_of(setting: str) -> str:
    """The file of the dump of the database that a setting names."""
    return f"{setting}.dump"


def require_in_folder(settings: FleetSettings) -> None:
    """Raise BackupFailed for an SQLite database outside of the data folder, which the backup would leave out."""
    for name, url in postgresql.urls_of(settings).items():
        if url.get_backend_name() == "sqlite" and url.database:
            file = Path(url.database)
            if file.parent.resolve() != settings.data_dir.resolve():
                raise BackupFailed(
                    f"MINDBUS_{name.upper()} names {file}; SQLite databases are backed up and restored in the data "
                    f"folder alone: move it into {settings.data_dir}"
                )


def folders_beside(settings: FleetSettings) -> dict[str, Path]:
    """Folders of artifacts and orphans, whose files never change; none where they lie in a bucket."""
    folders = {"artifacts": open_files(settings).local_root, "orphans": settings.orphans_dir}
    return {name: folder for name, folder in folders.items() if folder is not None}


def _copy_folder(source: Path, target: Path) -> None:
    """Copy the files that are there; one that is handed over meanwhile is in a database."""
    for path in sorted(source.rglob("*")) if source.is_dir() else ():
        to = target / path.relative_to(source)
        if path.is_dir():
            to.mkdir(parents=True, exist_ok=True)
            continue
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)
        except FileNotFoundError:
            continue
