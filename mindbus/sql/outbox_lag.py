"""Lag of an outbox: how much is recorded that is still to be published, and since when."""

from datetime import UTC, datetime

from sqlalchemy import Connection, func, select

from mindbus.bus.telemetry import Metric, series
from mindbus.sql.database import Database
from mindbus.sql.tables import NOT_PUBLISHED, InboxTables

OUTBOX_ROWS = Metric("Gauge", "mindbus_outbox_rows", "Outcomes and messages still to be published", ("schema",))
OUTBOX_LAG = Metric("Gauge", "mindbus_outbox_lag_seconds", "Age of the oldest unpublished outcome", ("schema",))


async def measure_lag(database: Database, tables: InboxTables) -> None:
    """Measure the unmarked outcomes of the inbox and the rows of the outbox. Raises DatabaseAway."""
    inbox = tables.inbox
    unmarked = select(func.count(), func.min(inbox.c.handled_at)).where(NOT_PUBLISHED)
    left = select(func.count()).select_from(tables.outbox)

    def count(connection: Connection) -> tuple[int, datetime | None]:
        outcomes, since = connection.execute(unmarked).one()
        return outcomes + (connection.scalar(left) or 0), since

    rows, since = await database.read(count)
    series(OUTBOX_ROWS, database.schema).set(rows)
    series(OUTBOX_LAG, database.schema).set(_age_s(since) if since else 0.0)


def _age_s(moment: datetime) -> float:
    # SQLite knows no time zones: it keeps UTC.
    return max((datetime.now(UTC) - moment.replace(tzinfo=moment.tzinfo or UTC)).total_seconds(), 0.0)
