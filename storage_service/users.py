"""Users: names, roles, time zones, languages, projects."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Row, String, select
from sqlalchemy.orm import Mapped, mapped_column

from bus_schema.replies import Code
from bus_schema.users import ListUsers, PutUser, User, UserPage, UserRecord
from mindbus.errors import Rejected
from mindbus.sql.database import Database
from mindbus.sql.tables import Utc
from storage_service.rows import insert_if_absent
from storage_service.tables import JSON_VALUE, StorageBase

_FIELDS = set(User.model_fields)


class NoSuchUser(Rejected, code=Code.NOT_FOUND):
    """There is no such user; add one with: mindbus users add."""


class UserConflict(Rejected, code=Code.CONFLICT):
    """The user has changed since it was read, or exists already; read it again, then decide anew."""


class UserRow(StorageBase):
    """A user, as operators describe them."""

    __tablename__ = "users"
    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    names: Mapped[list[str]] = mapped_column(JSON_VALUE)
    role: Mapped[str] = mapped_column(String(200))
    zone: Mapped[str | None] = mapped_column(String(64))
    language: Mapped[str | None] = mapped_column(String(8))
    projects: Mapped[list[str]] = mapped_column(JSON_VALUE)
    version: Mapped[int] = mapped_column(BigInteger)
    changed_at: Mapped[datetime] = mapped_column(Utc)


class Users:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database, self.clock = database, clock

    async def put(self, command: PutUser) -> UserRecord:
        """Store a user within the current transaction. Raises UserConflict."""
        session, user = self.database.session, command.user
        row = await session.get(UserRow, user.user_id, with_for_update=True)
        version = row.version if row else 0
        if command.expected_version not in (None, version):
            raise UserConflict(user_id=user.user_id, version=version)
        values: dict[str, Any] = user.model_dump(mode="json", include=_FIELDS - {"user_id"})
        values |= {"version": version + 1, "changed_at": self.clock()}
        if row is not None:
            if _as_user(row).model_dump(include=_FIELDS) == user.model_dump(include=_FIELDS):
                return _as_user(row)
            for name, value in values.items():
                setattr(row, name, value)
            await session.flush()
        elif not await insert_if_absent(session, UserRow, user_id=user.user_id, **values):
            # Another transaction has inserted it first.
            return await self.put(command)
        return UserRecord.model_validate({"user_id": user.user_id, **values})

    async def get(self, user_id: str) -> UserRecord:
        """Raises NoSuchUser."""
        async with self.database.reading() as session:
            row = await session.get(UserRow, user_id)
        if row is None:
            raise NoSuchUser(user_id=user_id)
        return _as_user(row)

    async def page(self, query: ListUsers) -> UserPage:
        """Users in order of ids; of one project, the page may be short although there are more."""
        rows_after = select(UserRow.__table__).order_by(UserRow.user_id).limit(query.limit + 1)
        if query.user_ids:
            rows_after = rows_after.where(UserRow.user_id.in_(query.user_ids))
        if query.cursor is not None:
            rows_after = rows_after.where(UserRow.user_id > query.cursor)
        rows = await self.database.read(lambda connection: connection.execute(rows_after).all())
        page = rows[: query.limit]
        items = tuple(map(_as_user, page))
        if query.project is not None:
            project = query.project.casefold()
            items = tuple(user for user in items if project in map(str.casefold, user.projects))
        return UserPage(items=items, next_cursor=page[-1].user_id if len(rows) > query.limit else None)


def _as_user(row: UserRow | Row[Any]) -> UserRecord:
    return UserRecord.model_validate({name: getattr(row, name) for name in UserRecord.model_fields})
