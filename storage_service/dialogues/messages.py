"""What was said, each user's dialogue in order."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.conversations import GetMessage, GetMessages, MessagePage, Saved
from bus_schema.dialogue import DialogueMessage
from mindbus.sql.database import Database
from storage_service.cursors import position_of
from storage_service.dialogues.tables import DialogueMessageRow, DialogueRow
from storage_service.inserts import insert_unless_taken
from storage_service.refusals import MessageIdTaken, NoSuchMessage


class Messages:
    """Messages of dialogues: stored once, never changed."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def save(self, message: DialogueMessage) -> Saved:
        """Together with the message at hand. Raises MessageIdTaken."""
        session = self.database.session
        dialogue = await locked_dialogue(session, message)
        query = select(DialogueMessageRow).where(DialogueMessageRow.message_id == message.message_id)
        existing = await session.scalar(query)
        if existing is None:
            await _add(session, dialogue, message)
        elif not _is_same(as_message(existing), message):
            raise MessageIdTaken(message_id=message.message_id)
        return Saved(
            message_id=message.message_id,
            is_new=existing is None,
            buffered=dialogue.last_position - dialogue.fragmented_position,
        )

    async def get(self, wanted: GetMessage) -> DialogueMessage:
        """Raises NoSuchMessage."""
        query = select(DialogueMessageRow).where(
            DialogueMessageRow.user_id == wanted.user_id, DialogueMessageRow.message_id == wanted.message_id
        )
        async with self.database.reading() as session:
            row = await session.scalar(query)
        if row is None:
            raise NoSuchMessage(message_id=wanted.message_id)
        return as_message(row)

    async def page(self, wanted: GetMessages) -> MessagePage:
        """Raises NotACursor."""
        position, is_forward = DialogueMessageRow.position, wanted.order == "oldest"
        query = select(DialogueMessageRow).where(DialogueMessageRow.user_id == wanted.user_id)
        if wanted.cursor is not None:
            start = position_of(wanted.cursor)
            query = query.where(position > start if is_forward else position < start)
        if wanted.since is not None:
            query = query.where(DialogueMessageRow.time >= wanted.since)
        query = query.order_by(position if is_forward else position.desc()).limit(wanted.limit + 1)
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        page = rows[: wanted.limit]
        next_cursor = str(page[-1].position) if len(rows) > wanted.limit else None
        return MessagePage(items=tuple(map(as_message, page)), next_cursor=next_cursor)


async def locked_dialogue(session: AsyncSession, message: DialogueMessage) -> DialogueRow:
    """The row of its user's dialogue, held until the transaction ends, begun where it is their first word."""
    begun = {"user_id": message.user_id, "last_position": 0, "fragmented_position": 0, "last_activity": message.time}
    await insert_unless_taken(session, DialogueRow, **begun)
    query = select(DialogueRow).where(DialogueRow.user_id == message.user_id).with_for_update()
    return (await session.scalars(query)).one()


async def _add(session: AsyncSession, dialogue: DialogueRow, message: DialogueMessage) -> None:
    dialogue.last_position += 1
    dialogue.last_activity = max(dialogue.last_activity, message.time)
    columns = message.model_dump(exclude={"trace_id", "ref", "kem_ids"})
    ref = message.ref.model_dump() if message.ref else None
    kem_ids = list(message.kem_ids) or None
    session.add(DialogueMessageRow(**columns, ref=ref, kem_ids=kem_ids, position=dialogue.last_position))
    await session.flush()


def as_message(row: DialogueMessageRow) -> DialogueMessage:
    """The message as it was said."""
    columns = {name: getattr(row, name) for name in DialogueMessage.model_fields if name != "trace_id"}
    return DialogueMessage.model_validate(columns | {"kem_ids": row.kem_ids or ()})


def _is_same(stored: DialogueMessage, message: DialogueMessage) -> bool:
    # When it was said may be told anew by whoever says it again.
    return stored.model_copy(update={"time": message.time}) == DialogueMessage.model_validate(
        message.model_dump(include=set(DialogueMessage.model_fields))
    )
