"""A quarter of a database is overwritten while its worker is dead; an operator puts the backup in its place."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing

from mindbus.testing.wait import until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed
from tests.damaged_files import damage

_WORKER = "audit"
_IDLE_WITHIN_S = 60.0
_DIES_WITHIN_S = 5.0


async def inflict(bed: Testbed) -> int:
    database = bed.settings.data_dir / f"{_WORKER}.db"
    backup = bed.folder / "backup.db"
    # What is done after a backup is lost with the database; nothing is.
    await bed.wave.pause()
    await until(bed.is_idle, _IDLE_WITHIN_S, "nothing is under way")
    supervisor = bed.supervisor
    # It starts no other worker before the damage is done.
    os.kill(supervisor, signal.SIGSTOP)
    try:
        bed.signal(signal.SIGKILL, _WORKER)
        await until(lambda: _WORKER not in bed.pids, _DIES_WITHIN_S, "the worker is dead")
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(database, backup)
        damage(database)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    bed.wave.resume()
    await bed.told(_WORKER)
    await bed.mindbus("down")
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()
    shutil.copyfile(backup, database)
    await bed.up()
    return 1


FAULT = Fault(inflict)
