"""Alembic's way in."""

from memory.lsm.tables import Base
from mindbus.sql import migrations

migrations.run(Base.metadata)
