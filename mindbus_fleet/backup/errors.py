"""Reasons why a backup or a restore does not happen."""

from bus_schema.codes import Code
from mindbus.errors import MindBusError


class BackupFailed(MindBusError, code=Code.INTERNAL):
    """A backup or a restore has failed; the data folder is as it was."""
