"""The end of a fleet that runs in the background."""

import os
import signal
import time
from contextlib import suppress

from mindbus.cli.errors import CommandError
from mindbus.settings import Settings
from mindbus_fleet.supervision.run_folder import RunFolder

_POLL_S = 0.05
# Draining workers, then a broker that closes its files.
_MARGIN_S = 60.0


def end_fleet(settings: Settings) -> bool:
    """Stop what runs on the data folder; returns whether anything did. Raises CommandError when it does not end."""
    folder = RunFolder(settings)
    if not folder.is_taken():
        return False
    pid = folder.supervisor_pid()
    if pid is not None:
        # Gone already, while its workers still end: they hold the lock.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + settings.drain_s + _MARGIN_S
    while folder.is_taken():
        if time.monotonic() > deadline:
            raise CommandError(f"it does not end: see {folder.logs}, then end process {pid} yourself")
        time.sleep(_POLL_S)
    return True
