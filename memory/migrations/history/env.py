"""Alembic's way in."""

from memory.history.tables import Base
from mindbus.sql import migrations

migrations.run(Base.metadata)
