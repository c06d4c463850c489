"""Fragments: where a dialogue's buffer ends, the next begins."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.conversations import ActiveDialogues, GetAllActiveDialogues, GetDialogueFragment
from bus_schema.dialogue import MAX_FRAGMENT_MESSAGES, DialogueFragment, DialogueState
from mindbus.sql.database import Database
from storage_service.dialogues.messages import as_message
from storage_service.dialogues.tables import DialogueMessageRow, DialogueRow, FragmentRow
from storage_service.refusals import NoSuchFragment, NotTheBuffer


class Fragments:
    """Every message belongs to one fragment at most, every fragment to one user; buffers are what is left."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def save(self, fragment: DialogueFragment) -> bool:
        """Whether it is new, together with the message at hand. Raises NotTheBuffer."""
        session = self.database.session
        query = select(DialogueRow).where(DialogueRow.user_id == fragment.user_id).with_for_update()
        dialogue = await session.scalar(query)
        if await session.get(FragmentRow, fragment.fragment_id):
            return False
        if dialogue is None:
            raise NotTheBuffer(fragment_id=fragment.fragment_id)
        first, last = dialogue.fragmented_position + 1, dialogue.fragmented_position + len(fragment.message_ids)
        said = await _rows_between(session, fragment.user_id, first, last)
        if tuple(row.message_id for row in said) != fragment.message_ids:
            raise NotTheBuffer(fragment_id=fragment.fragment_id)
        dialogue.fragmented_position = last
        columns = fragment.model_dump(include={"fragment_id", "user_id", "started_at", "ended_at", "reason"})
        ref = fragment.ref.model_dump() if fragment.ref else None
        session.add(FragmentRow(**columns, ref=ref, first_position=first, last_position=last))
        await session.flush()
        return True

    async def get(self, wanted: GetDialogueFragment) -> DialogueFragment:
        """As it was saved. Raises NoSuchFragment."""
        async with self.database.reading() as session:
            row = await session.get(FragmentRow, wanted.fragment_id)
            if row is None:
                raise NoSuchFragment(fragment_id=wanted.fragment_id)
            said = await _rows_between(session, row.user_id, row.first_position, row.last_position)
        columns = {name: getattr(row, name) for name in ("fragment_id", "user_id", "started_at", "ended_at", "reason")}
        messages = () if row.ref else tuple(map(as_message, said))
        ids = tuple(each.message_id for each in said)
        return DialogueFragment.model_validate(columns | {"message_ids": ids, "messages": messages, "ref": row.ref})

    async def active(self, wanted: GetAllActiveDialogues) -> ActiveDialogues:
        """Dialogues with a buffer, by user id, which is the cursor as well."""
        query = select(DialogueRow).where(DialogueRow.last_position > DialogueRow.fragmented_position)
        if wanted.user_id is not None:
            query = query.where(DialogueRow.user_id == wanted.user_id)
        if wanted.silent_since is not None:
            query = query.where(DialogueRow.last_activity <= wanted.silent_since)
        if wanted.cursor is not None:
            query = query.where(DialogueRow.user_id > wanted.cursor)
        query = query.order_by(DialogueRow.user_id).limit(wanted.limit + 1)
        async with self.database.reading() as session:
            dialogues = (await session.scalars(query)).all()
            page = dialogues[: wanted.limit]
            items = [await _state(session, dialogue) for dialogue in page]
        return ActiveDialogues(
            items=tuple(items), next_cursor=page[-1].user_id if len(dialogues) > wanted.limit else None
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
        user_id=dialogue.user_id, buffer=tuple(map(as_message, rows)), last_activity=dialogue.last_activity
    )
