"""Recording: messages and fragments go into the log, ended episodes are segmented, gaps are filled."""

import asyncio
from collections.abc import Sequence

from bus_schema.conversations import MessageStored
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.lsm import Recorded, RecordExchange
from memory.lsm.recording import Utterance
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, background, on_command, on_event
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.conversations import Conversations
from workers.lsm.events import in_conversation
from workers.lsm.gaps import Gaps

_AGAIN_S = 2.0
_SEGMENT_AGAIN_S = 1.0


class Recording:
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
        note = self._memory.recorder.erasures.count(event.user_id)
        if await self._is_gone(event.user_id, event.message_id):
            logger().info("message was erased meanwhile", message_id=event.message_id)
            return ()
        worded = await self._conversations.worded(event)
        return await self._take_over(event.user_id, [worded], note)

    @on_event
    async def end_fragment(self, fragment: DialogueFragment) -> tuple[Publish, ...]:
        """Record the messages of a fragment that are missing, then end its episode."""
        chat_id = fragment.user_id
        note = self._memory.recorder.erasures.count(chat_id)
        if await self._is_gone(chat_id, fragment.message_ids[-1]):
            return ()
        whole = await self._conversations.whole(fragment)
        said = [Utterance.from_storage(message) for message in whole.messages]
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
