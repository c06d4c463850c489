"""Alembic's way in."""

from memory.swm.tables import SwmBase
from mindbus.sql import migrations

migrations.run(SwmBase.metadata)
