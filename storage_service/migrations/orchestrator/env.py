"""Alembic environment of the orchestrator's database."""

from mindbus.sql import migrations
from storage_service.runs import RunBase

migrations.run(RunBase.metadata)
