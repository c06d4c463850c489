"""The commands `backup`, `backups` and `restore`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from bus_schema.codes import Code
from config.settings import FleetSettings
from mindbus.cli.console import note, say, show_result, show_table
from mindbus.cli.errors import CommandError, read_settings
from mindbus.cli.options import Json
from mindbus.files.disk import lock_file
from mindbus_fleet.backup.copies import Copies
from mindbus_fleet.backup.repository import Repository
from mindbus_fleet.backup.restore import Restore
from mindbus_fleet.supervision.run_folder import RunFolder

app = typer.Typer()

_PASSWORD = typer.Option(
    "--password-file", envvar="MINDBUS_BACKUP_PASSWORD_FILE", help="File with the password that encrypts the backups."
)
Place = Annotated[
    str, typer.Argument(metavar="PLACE", help="A folder, s3://bucket/prefix, or a place that restic knows.")
]
Password = Annotated[Path | None, _PASSWORD]


@app.command()
def backup(place: Place, password_file: Password = None, as_json: Json = False) -> None:
    """Back up all data of this folder, while the fleet runs; what PLACE has already is not stored twice.

    Databases are copied as of one instant, then everything goes to a restic repository, encrypted. What lies in the
    broker's queues is not copied: a restore has it sent again by those who sent it.

    [bold]Examples[/bold]

    mindbus backup /media/disk/mindbus --password-file ~/backup-password

    mindbus backup s3://backups/mindbus
    """
    settings = read_settings(FleetSettings)
    if not settings.data_dir.is_dir():
        raise CommandError(f"{settings.data_dir} does not exist: nothing has run there yet")
    repository = Repository(place, settings, password_file)
    repository.open()
    held = lock_file(settings.data_dir / "backup.lock")
    if held is None:
        raise CommandError("another backup of this folder is under way; wait until it ends", Code.CONFLICT)
    copies = Copies(settings, note)
    try:
        manifest = copies.make()
        note(f"storing in {place}")
        summary = repository.add(copies.paths(manifest))
    finally:
        copies.remove()
        os.close(held)
    made = {
        "snapshot": summary["snapshot_id"][:8],
        "taken_at": manifest.taken_at.isoformat(),
        "databases": {each.path: sum(each.rows.values()) for each in manifest.databases},
        "files": summary["total_files_processed"],
        "size_bytes": summary["total_bytes_processed"],
        "added_bytes": summary["data_added"],
    }
    added, size = _mb(made["added_bytes"]), _mb(made["size_bytes"])
    show_result(made, f"backup {made['snapshot']}: {made['files']} files, {size}, {added} of it new", as_json=as_json)


@app.command()
def backups(place: Place, password_file: Password = None, as_json: Json = False) -> None:
    """List the backups in a place, the newest first.

    [bold]Example[/bold]

    mindbus backups /media/disk/mindbus
    """
    found = Repository(place, read_settings(FleetSettings), password_file).snapshots()[::-1]
    rows = [{"snapshot": each.short_id, "taken_at": each.time.isoformat(timespec="seconds")} for each in found]
    if as_json:
        show_result(rows, "", as_json=True)
    elif not rows:
        say("no backups")
    else:
        show_table(("snapshot", "taken at"), [tuple(row.values()) for row in rows])


@app.command()
def restore(
    place: Place,
    snapshot: Annotated[str, typer.Option("--snapshot", help="Which backup: the beginning of its id.")] = "latest",
    password_file: Password = None,
    as_json: Json = False,
) -> None:
    """Restore a backup into an empty data folder; start the fleet with `mindbus up` afterwards.

    Every file is compared with what was backed up before any is put in place. Runs that were under way go on.

    [bold]Example[/bold]

    MINDBUS_DATA_DIR=new mindbus restore /media/disk/mindbus --password-file ~/backup-password
    """
    settings = read_settings(FleetSettings)
    if settings.data_dir.is_dir() and RunFolder(settings).is_taken():
        raise CommandError(f"a fleet runs on {settings.data_dir}; `mindbus down` first")
    repository = Repository(place, settings, password_file)
    done = Restore(settings, repository, note).run(repository.find(snapshot))
    databases = {each.path: sum(each.rows.values()) for each in done.manifest.databases}
    result = {"taken_at": done.manifest.taken_at.isoformat(), "databases": databases, "sent_again": done.sent_again}
    show_result(
        result,
        f"restored the backup of {result['taken_at']} to {settings.data_dir}; start it with `mindbus up`",
        as_json=as_json,
    )


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
