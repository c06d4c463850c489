"""The log of messages: recording of messages and fragments, segmentation of ended episodes, search for gaps."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bus_schema.conversations import GetMessages, ListDialogues, MessageStored
from bus_schema.dialogue import DialogueFragment, DialogueMessage, conversation_trace
from bus_schema.lsm import Recorded, RecordExchange
from bus_schema.lsm_events import EpisodePacked, EpisodeReactivated, EpisodeTouched
from memory.lsm.recorder import RecordingEvent, Utterance
from memory.lsm.segmentation import SegmentationEvent
from memory.lsm.service import LongTermMemory
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, background, on_command, on_event
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.conversations import Conversations
from mindbus.sdk.requests import request

LsmEvent = RecordingEvent | SegmentationEvent | EpisodeTouched | EpisodeReactivated | EpisodePacked
_PAGE = 200
_AGAIN_S = 2.0
_SEGMENT_AGAIN_S = 1.0


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
        note = self.memory.listeners.erasures(gap.user_id)
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
            return await self.conversations.with_text(message)
        except (PermanentFailure, Rejected) as unreadable:
            # One that nobody can read must not keep out those after it.
            logger().warning("what was said cannot be read", message_id=message.message_id, reason=str(unreadable))
            return None

    async def _look(self) -> None:
        cursor: str | None = None
        while True:
            page = await request(self.bus, ListDialogues(cursor=cursor, limit=_PAGE))
            heard = await self.memory.queries.stored_counts([each.user_id for each in page.items])
            self._gaps += [_Gap(each.user_id) for each in page.items if heard.get(each.user_id, 0) < each.messages]
            cursor = page.next_cursor
            if cursor is None:
                break
        if self._gaps:
            logger().info("gaps in the log", chats=len(self._gaps))


class MessageLogHandlers:
    """Handlers and background tasks of the log; they wait for no model."""

    def __init__(self, memory: LongTermMemory, conversations: Conversations, gaps: Gaps) -> None:
        self._memory, self._conversations, self._gaps = memory, conversations, gaps

    @on_command
    async def record(self, command: RecordExchange, context: MessageContext) -> tuple[Recorded | Publish, ...]:
        outcome = await self._memory.recorder.record(
            command.chat_id, list(map(Utterance.from_command, command.messages))
        )
        fields = {"raw_log_ids": outcome.raw_log_ids, "episode_id": outcome.episode_id, "new": outcome.new}
        recorded = Recorded.model_validate(fields)
        return (recorded, *in_conversation(outcome.events))

    @on_event
    async def record_message(self, event: MessageStored) -> tuple[Publish, ...]:
        """Record a message as soon as storage has it."""
        note = self._memory.listeners.erasures(event.user_id)
        if await self._is_gone(event.user_id, event.message_id):
            logger().info("message was erased meanwhile", message_id=event.message_id)
            return ()
        worded = await self._conversations.with_text(event)
        return await self._take_over(event.user_id, [worded], note)

    @on_event
    async def end_fragment(self, fragment: DialogueFragment) -> tuple[Publish, ...]:
        """Record the messages of a fragment that are missing, then end its episode."""
        chat_id = fragment.user_id
        note = self._memory.listeners.erasures(chat_id)
        if await self._is_gone(chat_id, fragment.message_ids[-1]):
            return ()
        whole = await self._conversations.whole(fragment)
        said = [Utterance.from_storage(message) for message in whole.messages]
        # A fragment is read again from its rows, which is no short work: all of it in a session.
        _session = self._memory.database.session
        outcome = await self._memory.recorder.take_over(chat_id, said, note)
        if not outcome.raw_log_ids:
            return ()
        ended = await self._memory.segmentation.end(chat_id, fragment.fragment_id, set(outcome.raw_log_ids))
        return in_conversation([*outcome.events, *ended])

    @background(pause_s=0.2)
    async def segment(self) -> tuple[Publish, ...]:
        """Settle one episode that has ended, in one transaction with its events."""
        events = await self._memory.segmentation.step(self._memory.clock())
        if events is None:
            await asyncio.sleep(_SEGMENT_AGAIN_S)
        return in_conversation(events or ())

    @background(pause_s=0.5)
    async def fill_gaps(self) -> tuple[Publish, ...]:
        """Record the messages that were stored while nobody listened."""
        try:
            missing = await self._gaps.step()
        except (TemporaryFailure, Rejected) as error:
            logger().warning("gaps in the log wait", reason=str(error))
            await asyncio.sleep(_AGAIN_S)
            return ()
        if missing is None:
            return ()
        return await self._take_over(*missing)

    async def _take_over(self, user_id: str, messages: Sequence[DialogueMessage], note: int) -> tuple[Publish, ...]:
        said = [Utterance.from_storage(message) for message in messages]
        return in_conversation((await self._memory.recorder.take_over(user_id, said, note)).events)

    async def _is_gone(self, user_id: str, message_id: str) -> bool:
        """Whether the chat is unknown here and the message is no longer in storage: its user has been erased."""
        is_known = await self._memory.queries.is_known(user_id)
        return not is_known and await self._conversations.find(user_id, message_id) is None


def in_conversation(events: Iterable[LsmEvent | None]) -> tuple[Publish, ...]:
    """The events that there are, with the trace of their conversations."""
    return tuple(Publish(event, conversation_trace(event.chat_id)) for event in events if event is not None)
