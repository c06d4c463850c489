"""Columns that mean the same on either database."""

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect, TypeDecorator


class Utc(TypeDecorator[datetime]):
    """An instant; SQLite, which knows no time zones, keeps it as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC, so that SQLite's texts sort as the instants do."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Back to an aware datetime."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
