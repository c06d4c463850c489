"""Alembic's way in."""

from memory.swm.tables import Base
from mindbus.sql import migrations

migrations.run(Base.metadata)
