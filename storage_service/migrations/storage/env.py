"""Alembic environment of storage's database."""

from mindbus.sql import migrations
from storage_service.tables import StorageBase

migrations.run(StorageBase.metadata)
