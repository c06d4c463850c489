"""Alembic's way in."""

from memory.lsm.tables import LsmBase
from mindbus.sql import migrations

migrations.run(LsmBase.metadata)
