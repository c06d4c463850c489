"""Whoever writes to a chat, or wants it gone, goes first or waits."""

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from memory.lsm.tables import ChatRow
from mindbus.sql.inserting import insert_unless_there


async def locked(session: AsyncSession, chat_id: str) -> ChatRow:
    """The row of a chat, made where there was none, for this transaction alone."""
    query = select(ChatRow).where(ChatRow.chat_id == chat_id).with_for_update()
    query = query.execution_options(populate_existing=True)
    if (row := await session.scalar(query)) is not None:
        return row
    await session.execute(insert_unless_there(session, ChatRow).values(chat_id=chat_id, turns=0, heard=0))
    return (await session.scalars(query)).one()


async def drop_if_empty(session: AsyncSession, chat_id: str) -> None:
    """Of a chat that was locked for nothing, nothing is left."""
    empty = delete(ChatRow).where(ChatRow.chat_id == chat_id, ChatRow.turns == 0)
    await session.execute(empty.execution_options(synchronize_session=False))
