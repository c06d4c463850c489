"""Alembic's way in."""

from memory.glm.tables import Base
from mindbus.sql import migrations

migrations.run(Base.metadata)
