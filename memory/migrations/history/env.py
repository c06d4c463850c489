"""Alembic's way in."""

from memory.history.sql_store import HistoryBase
from mindbus.sql import migrations

migrations.run(HistoryBase.metadata)
