"""Alembic's way in."""

from mindbus.sql import migrations
from storage_service.care import tables

migrations.run(tables.Base.metadata)
