"""Dialogues: messages in order, fragments, buffers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, case, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.conversations import (
    ActiveDialogues,
    Dialogue,
    DialoguePage,
    GetAllActiveDialogues,
    GetDialogueFragment,
    GetMessage,
    GetMessages,
    ListDialogues,
    MessagePage,
    RateAnswer,
    Saved,
    may_be_rated,
)
from bus_schema.dialogue import MAX_FRAGMENT_MESSAGES, DialogueFragment, DialogueMessage, DialogueState
from mindbus.errors import TemporaryFailure
from mindbus.sql.database import Database
from mindbus.sql.statements import PreparedStatement
from retrieval.cursors import PageKey, position_of, split_page
from storage_service.errors import FragmentMismatch, MessageIdTaken, NoSuchFragment, NoSuchMessage, NotAnAnswer
from storage_service.rows import inserting, upserting
from storage_service.tables import DialogueMessageRow, DialogueRow, FragmentRow

_FRAGMENT_COLUMNS = ("fragment_id", "user_id", "started_at", "ended_at", "reason")


@dataclass(frozen=True, slots=True)
class Dialogues:
    """Dialogues of all users.

    A message is stored once and never changed, but for its rating; it belongs to at most one fragment, the buffer is
    the rest of a dialogue.
    """

    database: Database

    async def save_message(self, message: DialogueMessage) -> Saved:
        """Store a message within the current transaction. Raises MessageIdTaken."""
        return await self.database.run(lambda connection: _save(connection, message))

    async def save_messages(self, messages: Sequence[DialogueMessage]) -> list[Saved | MessageIdTaken]:
        """Store messages within the current transaction: what became of each."""

        def save(connection: Connection) -> list[Saved | MessageIdTaken]:
            return [_saved_or_not(connection, message) for message in messages]

        return await self.database.run(save)

    async def message(self, request: GetMessage) -> DialogueMessage:
        """Raises NoSuchMessage."""
        async with self.database.reading() as session:
            row = await session.scalar(_one_message(request))
        if row is None:
            raise NoSuchMessage(message_id=request.message_id)
        return _as_message(row)

    async def rate(self, command: RateAnswer) -> DialogueMessage | None:
        """Change the rating of an answer within the current transaction: the answer, None if it is rated so already.

        Raises NoSuchMessage, NotAnAnswer.
        """
        session = self.database.session
        row = await session.scalar(_one_message(command).with_for_update())
        if row is None:
            raise NoSuchMessage(message_id=command.message_id)
        if not may_be_rated(_as_message(row)):
            raise NotAnAnswer(message_id=command.message_id)
        if row.rating == command.rating:
            return None
        row.rating = command.rating
        await session.flush()
        return _as_message(row)

    async def messages(self, request: GetMessages) -> MessagePage:
        """Raises InvalidCursor."""
        position, is_forward = DialogueMessageRow.position, request.order == "oldest"
        query = select(DialogueMessageRow).where(DialogueMessageRow.user_id == request.user_id)
        if request.cursor is not None:
            start = position_of(request.cursor)
            query = query.where(position > start if is_forward else position < start)
        if request.since is not None:
            query = query.where(DialogueMessageRow.time >= request.since)
        query = query.order_by(position if is_forward else position.desc()).limit(request.limit + 1)
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        page, last = split_page(rows, request.limit)
        return MessagePage(items=tuple(map(_as_message, page)), next_cursor=str(last.position) if last else None)

    async def save_fragment(self, fragment: DialogueFragment) -> bool:
        """Store a fragment within the current transaction; whether it is new. Raises FragmentMismatch."""
        session = self.database.session
        query = select(DialogueRow).where(DialogueRow.user_id == fragment.user_id).with_for_update()
        dialogue = await session.scalar(query)
        if await session.get(FragmentRow, fragment.fragment_id):
            return False
        if dialogue is None:
            raise FragmentMismatch(fragment_id=fragment.fragment_id)
        first, last = dialogue.fragmented_position + 1, dialogue.fragmented_position + len(fragment.message_ids)
        rows = await _rows_between(session, fragment.user_id, first, last)
        if tuple(row.message_id for row in rows) != fragment.message_ids:
            raise FragmentMismatch(fragment_id=fragment.fragment_id)
        dialogue.fragmented_position = last
        columns = fragment.model_dump(include=set(_FRAGMENT_COLUMNS))
        ref = fragment.ref.model_dump() if fragment.ref else None
        session.add(FragmentRow(**columns, ref=ref, first_position=first, last_position=last))
        await session.flush()
        return True

    async def fragment(self, request: GetDialogueFragment) -> DialogueFragment:
        """A fragment as it was saved. Raises NoSuchFragment."""
        async with self.database.reading() as session:
            row = await session.get(FragmentRow, request.fragment_id)
            if row is None:
                raise NoSuchFragment(fragment_id=request.fragment_id)
            rows = await _rows_between(session, row.user_id, row.first_position, row.last_position)
        columns = {name: getattr(row, name) for name in _FRAGMENT_COLUMNS}
        messages = () if row.ref else tuple(map(_as_message, rows))
        ids = tuple(row.message_id for row in rows)
        return DialogueFragment.model_validate(columns | {"message_ids": ids, "messages": messages, "ref": row.ref})

    async def active(self, request: GetAllActiveDialogues) -> ActiveDialogues:
        """A page of dialogues with a buffer, by user id; the cursor is the last id."""
        query = select(DialogueRow).where(DialogueRow.last_position > DialogueRow.fragmented_position)
        if request.user_id is not None:
            query = query.where(DialogueRow.user_id == request.user_id)
        if request.silent_since is not None:
            query = query.where(DialogueRow.last_activity <= request.silent_since)
        if request.cursor is not None:
            query = query.where(DialogueRow.user_id > request.cursor)
        query = query.order_by(DialogueRow.user_id).limit(request.limit + 1)
        async with self.database.reading() as session:
            page, last = split_page((await session.scalars(query)).all(), request.limit)
            items = [await _state(session, dialogue) for dialogue in page]
        return ActiveDialogues(items=tuple(items), next_cursor=last.user_id if last else None)

    async def page(self, request: ListDialogues) -> DialoguePage:
        """A page of dialogues, the latest first. Raises InvalidCursor."""
        query = select(DialogueRow).order_by(DialogueRow.last_activity.desc(), DialogueRow.user_id.desc())
        if request.user_id is not None:
            query = query.where(DialogueRow.user_id == request.user_id)
        if request.cursor is not None:
            query = query.where(_before(request.cursor))
        async with self.database.reading() as session:
            rows = (await session.scalars(query.limit(request.limit + 1))).all()
        page, last = split_page(rows, request.limit)
        return DialoguePage(
            items=tuple(map(_as_dialogue, page)),
            next_cursor=PageKey(last.last_activity, last.user_id).plain if last else None,
        )


def _one_message(request: GetMessage | RateAnswer) -> Select[DialogueMessageRow]:
    return select(DialogueMessageRow).where(
        DialogueMessageRow.user_id == request.user_id, DialogueMessageRow.message_id == request.message_id
    )


_NESTED_COLUMNS = {"ref", "kem_ids", "episodes", "attachments", "model_use"}
_PLAIN_COLUMNS = set(DialogueMessage.model_fields) - _NESTED_COLUMNS - {"trace_id"}
_MESSAGES, _DIALOGUES = DialogueMessageRow.__table__, DialogueRow.__table__
_MESSAGE = PreparedStatement(select(_MESSAGES).where(_MESSAGES.c.message_id == bindparam("id")))
_DIALOGUE = PreparedStatement(select(_DIALOGUES).where(_DIALOGUES.c.user_id == bindparam("of")))


def _save(connection: Connection, message: DialogueMessage) -> Saved:
    existing = _MESSAGE.first(connection, {"id": message.message_id})
    if existing is not None:
        if not _is_same(_as_message(existing), message):
            raise MessageIdTaken(message_id=message.message_id)
        dialogue = _DIALOGUE.first(connection, {"of": message.user_id})
        return _saved(message, dialogue, existing.position, is_new=False)
    begun = {"user_id": message.user_id, "last_position": 1, "fragmented_position": 0, "last_activity": message.time}
    dialogue = _ADVANCING.first(connection, begun)
    columns = message.model_dump(include=_PLAIN_COLUMNS)
    nested = message.model_dump(mode="json", include=_NESTED_COLUMNS)
    row = columns | {name: value or None for name, value in nested.items()} | {"position": dialogue.last_position}
    if inserting(DialogueMessageRow).first(connection, row) is None:
        raise TemporaryFailure(f"{message.message_id} is being stored by another transaction")
    return _saved(message, dialogue, dialogue.last_position, is_new=True)


def _saved_or_not(connection: Connection, message: DialogueMessage) -> Saved | MessageIdTaken:
    try:
        return _save(connection, message)
    except MessageIdTaken as error:
        # Nothing had been written.
        return error


def _advancing(dialect: str) -> Any:
    """Make room for a message at the end of a dialogue, whose row is locked until the transaction ends."""
    insertion = upserting(dialect, DialogueRow)
    begun = insertion.excluded
    advanced = {
        "last_position": DialogueRow.last_position + 1,
        "last_activity": case(
            (begun.last_activity > DialogueRow.last_activity, begun.last_activity), else_=DialogueRow.last_activity
        ),
    }
    returned = (DialogueRow.last_position, DialogueRow.fragmented_position)
    return insertion.on_conflict_do_update(index_elements=["user_id"], set_=advanced).returning(*returned)


_ADVANCING = PreparedStatement(_advancing)


def _saved(message: DialogueMessage, dialogue: Row[Any], position: int, *, is_new: bool) -> Saved:
    buffered = dialogue.last_position - dialogue.fragmented_position
    return Saved(message_id=message.message_id, is_new=is_new, buffered=buffered, position=position)


def _as_message(row: DialogueMessageRow | Row[Any]) -> DialogueMessage:
    nested = {name: value for name in _NESTED_COLUMNS if (value := getattr(row, name)) is not None}
    return DialogueMessage.model_validate({name: getattr(row, name) for name in _PLAIN_COLUMNS} | nested)


def _is_same(stored: DialogueMessage, message: DialogueMessage) -> bool:
    # A repetition may have another time, and the answer may have been rated since.
    return stored.model_copy(update={"time": message.time, "rating": message.rating}) == DialogueMessage.model_validate(
        message.model_dump(include=set(DialogueMessage.model_fields))
    )


async def _rows_between(session: AsyncSession, user_id: str, first: int, last: int) -> Sequence[DialogueMessageRow]:
    query = (
        select(DialogueMessageRow)
        .where(DialogueMessageRow.user_id == user_id, DialogueMessageRow.position.between(first, last))
        .order_by(DialogueMessageRow.position)
    )
    return (await session.scalars(query)).all()


async def _state(session: AsyncSession, dialogue: DialogueRow) -> DialogueState:
    last = min(dialogue.last_position, dialogue.fragmented_position + MAX_FRAGMENT_MESSAGES)
    rows = await _rows_between(session, dialogue.user_id, dialogue.fragmented_position + 1, last)
    return DialogueState(
        user_id=dialogue.user_id, buffer=tuple(map(_as_message, rows)), last_activity=dialogue.last_activity
    )


def _before(cursor: str) -> ColumnElement[bool]:
    key = PageKey.parse_plain(cursor)
    activity = DialogueRow.last_activity
    return or_(activity < key.time, and_(activity == key.time, DialogueRow.user_id < key.id))


def _as_dialogue(row: DialogueRow) -> Dialogue:
    return Dialogue(
        user_id=row.user_id,
        last_activity=row.last_activity,
        messages=row.last_position,
        is_active=row.last_position > row.fragmented_position,
    )
