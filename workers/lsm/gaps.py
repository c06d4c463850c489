"""Looks whether anything was said that long-term memory has not heard of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bus_schema.conversations import Dialogue, GetMessages, ListDialogues
from bus_schema.dialogue import DialogueMessage
from memory.lsm.service import LongTermMemory
from mindbus.bus.client import Client
from mindbus.errors import PermanentFailure, Rejected
from mindbus.logs import logger
from mindbus.sdk.conversations import Conversations
from mindbus.sdk.requests import request

_PAGE = 200


@dataclass
class _Gap:
    """A chat that is read again from its beginning, a page at a time."""

    user_id: str
    cursor: str | None = None


@dataclass
class Gaps:
    """Compares storage's number of messages with the log's, chat by chat, then reads what differs.

    An event that is on its way makes a gap, too: it is filled, then the event finds its message recorded.
    """

    bus: Client
    conversations: Conversations
    memory: LongTermMemory
    interval: timedelta
    _next_look: datetime | None = None
    _gaps: list[_Gap] = field(default_factory=list)

    def begin(self) -> None:
        """Look at once: there is no telling what was missed before."""
        self._next_look = None
        self._gaps.clear()

    async def step(self) -> tuple[str, Sequence[DialogueMessage], int] | None:
        """The next portion of a chat that lacks something, its words read, with a note of who was forgotten by then.

        Raises Rejected, TemporaryFailure, BusUnavailable.
        """
        now = self.memory.clock()
        if not self._gaps and (self._next_look is None or now >= self._next_look):
            await self._look()
            self._next_look = now + self.interval
        if not self._gaps:
            return None
        gap = self._gaps[0]
        note = self.memory.recorder.erasures.count(gap.user_id)
        query = GetMessages(user_id=gap.user_id, cursor=gap.cursor, limit=_PAGE)
        page = await request(self.bus, query)
        worded = [each for message in page.items if (each := await self._worded(message)) is not None]
        # Only now: whatever failed above is tried again from the same place.
        gap.cursor = page.next_cursor
        if page.next_cursor is None:
            self._gaps.pop(0)
        return gap.user_id, worded, note

    async def _worded(self, message: DialogueMessage) -> DialogueMessage | None:
        try:
            return await self.conversations.worded(message)
        except (PermanentFailure, Rejected) as unreadable:
            # One that nobody can read must not keep out those after it.
            logger().warning("what was said cannot be read", message_id=message.message_id, reason=str(unreadable))
            return None

    async def _look(self) -> None:
        cursor: str | None = None
        while True:
            page = await request(self.bus, ListDialogues(cursor=cursor, limit=_PAGE))
            self._gaps += await self._lacking(page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
        if self._gaps:
            logger().info("gaps in the log", chats=len(self._gaps))

    async def _lacking(self, dialogues: Sequence[Dialogue]) -> list[_Gap]:
        heard = await self.memory.queries.stored_counts([each.user_id for each in dialogues])
        return [_Gap(each.user_id) for each in dialogues if heard.get(each.user_id, 0) < each.messages]
