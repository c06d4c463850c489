"""A restic repository: encrypted, deduplicated snapshots of folders, in a folder or a bucket."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from config.settings import FleetSettings
from mindbus_fleet.backup.errors import BackupFailed

TAG = "mindbus"
# Exit code of `restic backup` that has made a snapshot without the files that it could not read.
_INCOMPLETE = 3
_MOST_NAMED = 20
_INSTALL = "Install restic (Debian, Ubuntu: `sudo apt-get install restic`; macOS: `brew install restic`)"
_NO_REPOSITORY = ("Is there a repository", "repository does not exist", "unable to open config file")


class BackupSnapshot(BaseModel):
    """A backup in a repository; `id` is restic's."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    id: str
    short_id: str
    time: datetime
    paths: tuple[str, ...]


class Repository:
    """The snapshots of one data folder; every method raises BackupFailed with what restic says."""

    def __init__(self, place: str, settings: FleetSettings, password_file: Path | None) -> None:
        """`place` is a folder, `s3://bucket/prefix`, or whatever else restic knows."""
        if shutil.which("restic") is None:
            raise BackupFailed(f"the program restic is missing. {_INSTALL}")
        self.place = place
        self._environment = _environment(place, settings, password_file)

    def open(self) -> None:
        """Open it with its password, or make it where there is none yet."""
        try:
            self._run("cat", "config")
        except BackupFailed as error:
            if not _is_missing(error):
                raise
            self._run("init")

    def add(self, paths: Sequence[Path]) -> dict[str, Any]:
        """Add a snapshot of folders; returns restic's summary. Raises BackupFailed, too, where it lacks some files."""
        done = self._start("backup", "--json", "--tag", TAG, *map(str, paths))
        if done.returncode not in (0, _INCOMPLETE):
            raise self._failure("backup", done)
        summary = next(each for each in _said_in(done.stdout) if each.get("message_type") == "summary")
        if done.returncode == _INCOMPLETE:
            unread = [str(each.get("item")) for each in _said_in(done.stderr) if each.get("message_type") == "error"]
            more = f" and {len(unread) - _MOST_NAMED} more" if len(unread) > _MOST_NAMED else ""
            named = ", ".join(unread[:_MOST_NAMED]) + more
            raise BackupFailed(
                f"the backup {summary['snapshot_id'][:8]} in {self.place} is incomplete: restic could not read {named};"
                " see to these files, then back up again"
            )
        return summary

    def snapshots(self) -> list[BackupSnapshot]:
        """The snapshots, oldest first."""
        try:
            found = json.loads(self._run("snapshots", "--json", "--tag", TAG)) or []
        except BackupFailed as error:
            if _is_missing(error):
                raise BackupFailed(f"there are no backups in {self.place}: `mindbus backup` makes them") from error
            raise
        return sorted(map(BackupSnapshot.model_validate, found), key=lambda each: each.time)

    def find(self, wanted: str) -> BackupSnapshot:
        """A snapshot by the beginning of its id, or the `latest`."""
        all_of_them = self.snapshots()
        named = [each for each in all_of_them if wanted == "latest" or each.id.startswith(wanted)]
        if not named:
            have = ", ".join(each.short_id for each in all_of_them[-5:]) or "none"
            raise BackupFailed(f"{self.place} has no backup {wanted}; the newest are: {have}")
        return named[-1]

    def restore(self, snapshot: BackupSnapshot, into: Path) -> None:
        """Write a snapshot below a folder and compare every byte with what was backed up."""
        self._run("restore", snapshot.id, "--target", str(into), "--verify")

    def check(self) -> None:
        """Read all data of the repository and verify them."""
        self._run("check", "--read-data")

    def _run(self, *arguments: str) -> str:
        done = self._start(*arguments)
        if done.returncode:
            raise self._failure(arguments[0], done)
        return done.stdout

    def _start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["restic", *arguments], env=self._environment, capture_output=True, text=True, check=False
        )

    def _failure(self, command: str, done: subprocess.CompletedProcess[str]) -> BackupFailed:
        said = " ".join((done.stderr or done.stdout).split())[-800:]
        return BackupFailed(f"restic {command} on {self.place}: {said}")


def _said_in(output: str) -> list[dict[str, Any]]:
    """The messages among the lines of an output with `--json`, which has warnings for people as well."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def _is_missing(error: BackupFailed) -> bool:
    return any(sign in str(error) for sign in _NO_REPOSITORY)


def _environment(place: str, settings: FleetSettings, password_file: Path | None) -> Mapping[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
    own["RESTIC_REPOSITORY"] = place
    if place.startswith("s3://"):
        endpoint = settings.s3_endpoint_url or os.environ.get("AWS_ENDPOINT_URL") or "s3.amazonaws.com"
        own["RESTIC_REPOSITORY"] = f"s3:{endpoint.rstrip('/')}/{place.removeprefix('s3://')}"
        if settings.s3_access_key and settings.s3_secret_key:
            own |= {"AWS_ACCESS_KEY_ID": settings.s3_access_key, "AWS_SECRET_ACCESS_KEY": settings.s3_secret_key}
    if password_file is not None:
        own["RESTIC_PASSWORD_FILE"] = str(password_file)
    if not {"RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND"} & own.keys():
        raise BackupFailed("backups are encrypted: name a file with the password, --password-file FILE")
    return own
