"""Alembic's way in."""

from memory.history.tables import HistoryBase
from mindbus.sql import migrations

migrations.run(HistoryBase.metadata)
