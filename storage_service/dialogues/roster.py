"""Which dialogues there are."""

from datetime import datetime

from sqlalchemy import ColumnElement, and_, or_, select

from bus_schema.conversations import Dialogue, DialoguePage, ListDialogues
from mindbus.sql.database import Database
from storage_service.dialogues.tables import DialogueRow
from storage_service.refusals import NotACursor


class Roster:
    """Everybody with whom something was said."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def page(self, wanted: ListDialogues) -> DialoguePage:
        """The latest first; the cursor is where the page before ended. Raises NotACursor."""
        query = select(DialogueRow).order_by(DialogueRow.last_activity.desc(), DialogueRow.user_id.desc())
        if wanted.cursor is not None:
            query = query.where(_before(wanted.cursor))
        async with self.database.reading() as session:
            rows = (await session.scalars(query.limit(wanted.limit + 1))).all()
        page = rows[: wanted.limit]
        last = page[-1] if len(rows) > wanted.limit else None
        return DialoguePage(
            items=tuple(map(_as_dialogue, page)),
            next_cursor=f"{last.last_activity.isoformat()} {last.user_id}" if last else None,
        )


def _before(cursor: str) -> ColumnElement[bool]:
    instant, _, user_id = cursor.partition(" ")
    try:
        moment = datetime.fromisoformat(instant)
    except ValueError:
        raise NotACursor(cursor=cursor) from None
    if moment.tzinfo is None or not user_id:
        raise NotACursor(cursor=cursor)
    at_once = and_(DialogueRow.last_activity == moment, DialogueRow.user_id < user_id)
    return or_(DialogueRow.last_activity < moment, at_once)


def _as_dialogue(row: DialogueRow) -> Dialogue:
    return Dialogue(
        user_id=row.user_id,
        last_activity=row.last_activity,
        messages=row.last_position,
        is_active=row.last_position > row.fragmented_position,
    )
