"""Alembic's way in."""

from mindbus.sql import migrations
from storage_service.run_tables import Base

migrations.run(Base.metadata)
