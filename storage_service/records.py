"""Records that agents and operators keep: users, facts, agents' own data by key."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Index, Row, String, Text, and_, or_, select
from sqlalchemy.orm import Mapped, mapped_column

from bus_schema.agent_data import AgentDataPage, AgentDatum, GetAgentData, PutAgentData
from bus_schema.facts import FactPage, ListFactRecords, SaveFacts
from bus_schema.processing import Fact
from bus_schema.replies import Code
from bus_schema.users import ListUsers, PutUser, User, UserPage, UserRecord
from mindbus.errors import Rejected
from mindbus.sql.database import Database
from mindbus.sql.tables import Utc
from retrieval.cursors import PageKey, split_page
from storage_service.errors import AgentDatumConflict
from storage_service.rows import insert_if_absent
from storage_service.tables import JSON_VALUE, AgentDatumRow, StorageBase

_FIELDS = set(User.model_fields)
# Rows that are read at once where not all of them are shown.
_BATCH = 500


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

    async def get(self, user_id: str, viewer: str | None = None) -> UserRecord:
        """A user; a viewer sees those who share a project with them. Raises NoSuchUser."""
        page = await self.page(ListUsers(user_ids=(user_id,)), viewer)
        if not page.items:
            raise NoSuchUser(user_id=user_id)
        return page.items[0]

    async def page(self, query: ListUsers, viewer: str | None = None) -> UserPage:
        """Users in order of ids; a viewer is told of nobody whom they may not see, neither by a cursor."""
        projects = None if viewer is None else _folded(await self._projects_of(viewer))

        def is_shown(user: UserRecord) -> bool:
            of_user = _folded(user.projects)
            is_seen = projects is None or user.user_id == viewer or bool(projects & of_user)
            return is_seen and (query.project is None or query.project.casefold() in of_user)

        found: list[UserRecord] = []
        batch, cursor = max(query.limit + 1, _BATCH if projects is not None or query.project else 0), query.cursor
        while len(found) <= query.limit:
            rows = await self._rows_after(cursor, query.user_ids, batch)
            found += filter(is_shown, map(_as_user, rows))
            if len(rows) < batch:
                break
            cursor = rows[-1].user_id
        items = tuple(found[: query.limit])
        return UserPage(items=items, next_cursor=items[-1].user_id if len(found) > query.limit else None)

    async def _rows_after(self, cursor: str | None, user_ids: Sequence[str], count: int) -> Sequence[Row[Any]]:
        rows_after = select(UserRow.__table__).order_by(UserRow.user_id).limit(count)
        if user_ids:
            rows_after = rows_after.where(UserRow.user_id.in_(user_ids))
        if cursor is not None:
            rows_after = rows_after.where(UserRow.user_id > cursor)
        return await self.database.read(lambda connection: connection.execute(rows_after).all())

    async def _projects_of(self, user_id: str) -> Sequence[str]:
        async with self.database.reading() as session:
            row = await session.get(UserRow, user_id)
        return row.projects if row else ()


def _folded(projects: Iterable[str]) -> set[str]:
    return set(map(str.casefold, projects))


def _as_user(row: UserRow | Row[Any]) -> UserRecord:
    return UserRecord.model_validate({name: getattr(row, name) for name in UserRecord.model_fields})


_MOST_MESSAGES = 50


class FactRow(StorageBase):
    """A fact; `said_by` owns it."""

    __tablename__ = "facts"
    __table_args__ = (Index(None, "said_by", "said_at"), Index(None, "said_at"))
    fact_id: Mapped[str] = mapped_column(String(80), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)
    said_by: Mapped[str] = mapped_column(String(64))
    project: Mapped[str | None] = mapped_column(String(100))
    said_at: Mapped[datetime] = mapped_column(Utc)
    supersedes: Mapped[str | None] = mapped_column(String(80))
    superseded_by: Mapped[str | None] = mapped_column(String(80))
    message_ids: Mapped[list[str]] = mapped_column(JSON_VALUE)
    shared_with: Mapped[str | None] = mapped_column(String(100))


class Facts:
    """The facts table."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def save(self, command: SaveFacts) -> None:
        """Insert or complete facts within the current transaction; repeating it changes nothing."""
        session = self.database.session
        for fact in command.facts:
            values: dict[str, Any] = fact.model_dump() | {"message_ids": list(fact.message_ids)[:_MOST_MESSAGES]}
            await insert_if_absent(session, FactRow, **(values | {"kind": fact.kind.value}))
            row = await session.get(FactRow, fact.fact_id, with_for_update=True, populate_existing=True)
            # A fact is its speaker's alone, whatever id another's has.
            if row is None or row.said_by != fact.said_by:
                continue
            row.superseded_by = row.superseded_by or fact.superseded_by
            message_ids = list(dict.fromkeys((*row.message_ids, *fact.message_ids)))[:_MOST_MESSAGES]
            if message_ids != row.message_ids:
                row.message_ids = message_ids
            await session.flush()

    async def page(self, query: ListFactRecords) -> FactPage:
        """Raises InvalidCursor."""
        statement = select(FactRow).where(*_conditions(query))
        if query.cursor is not None:
            key = PageKey.parse_plain(query.cursor)
            same_time = and_(FactRow.said_at == key.time, FactRow.fact_id > key.id)
            statement = statement.where(or_(FactRow.said_at < key.time, same_time))
        statement = statement.order_by(FactRow.said_at.desc(), FactRow.fact_id).limit(query.limit + 1)
        async with self.database.reading() as session:
            rows, last = split_page((await session.scalars(statement)).all(), query.limit)
        return FactPage(
            items=tuple(map(_as_fact, rows)), next_cursor=PageKey(last.said_at, last.fact_id).plain if last else None
        )


def _conditions(query: ListFactRecords) -> Iterable[ColumnElement[bool]]:
    if query.users:
        yield FactRow.said_by.in_(query.users)
    if query.fact_ids:
        yield FactRow.fact_id.in_(query.fact_ids)
    if query.kind is not None:
        yield FactRow.kind == query.kind.value
    if query.shared:
        yield FactRow.shared_with.is_not(None)
    if not query.superseded:
        yield FactRow.superseded_by.is_(None)


def _as_fact(row: FactRow) -> Fact:
    columns: dict[str, Any] = {name: getattr(row, name) for name in Fact.model_fields}
    return Fact.model_validate(columns)


@dataclass(frozen=True, slots=True)
class AgentData:
    """Versioned values by agent, namespace and key."""

    database: Database
    clock: Callable[[], datetime]

    async def put(self, request: PutAgentData) -> int:
        """Store a value within the current transaction; returns its version. Raises AgentDatumConflict."""
        session = self.database.session
        key = {"agent": request.agent, "namespace": request.namespace, "key": request.key}
        row = await session.get(AgentDatumRow, key, with_for_update=True)
        version = row.version if row else 0
        if request.expected_version not in (None, version):
            raise AgentDatumConflict(expected_version=request.expected_version, version=version)
        if request.value is None:
            if row is not None:
                await session.delete(row)
                await session.flush()
            return 0
        fields = {"value": request.value, "version": version + 1, "updated_at": self.clock()}
        if row is not None:
            row.value, row.version, row.updated_at = request.value, version + 1, self.clock()
            await session.flush()
        elif not await insert_if_absent(session, AgentDatumRow, **key, **fields):
            # Another transaction has inserted it first: replace its value, or report its version.
            return await self.put(request)
        return version + 1

    async def page(self, request: GetAgentData) -> AgentDataPage:
        """A page in order of keys; the cursor is the last key."""
        query = select(AgentDatumRow).where(
            AgentDatumRow.agent == request.agent, AgentDatumRow.namespace == request.namespace
        )
        if request.key is not None:
            query = query.where(AgentDatumRow.key == request.key)
        if request.cursor is not None:
            query = query.where(AgentDatumRow.key > request.cursor)
        query = query.order_by(AgentDatumRow.key).limit(request.limit + 1)
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        page, last = split_page(rows, request.limit)
        items = tuple(AgentDatum.model_validate(row, from_attributes=True) for row in page)
        return AgentDataPage(items=items, next_cursor=last.key if last else None)
