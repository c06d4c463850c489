"""The Alembic environment that the databases of all services share; Alembic runs it by its path."""

from mindbus.sql import migrations

migrations.run()
