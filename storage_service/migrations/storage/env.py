"""Alembic's way in."""

from mindbus.sql import migrations
from storage_service.models import Base

migrations.run(Base.metadata)
