"""Alembic's way in."""

from mindbus.sql import migrations
from storage_service.dialogues import tables as dialogues
from storage_service.maintenance import tables as care

# All of them are of one metadata, as long as all of them are imported.
migrations.run((care or dialogues).Base.metadata)
