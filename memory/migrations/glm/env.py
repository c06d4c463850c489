"""Alembic's way in."""

from memory.glm.tables import GlmBase
from mindbus.sql import migrations

migrations.run(GlmBase.metadata)
