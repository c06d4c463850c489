"""Alembic's way in."""

from mindbus.sql import migrations
from storage_service.care import tables as care
from storage_service.dialogues import tables as dialogues

# All of them are of one metadata, as long as all of them are imported.
migrations.run((care or dialogues).Base.metadata)
