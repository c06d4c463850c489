"""Takes down what is said, whether it is told or heard."""

import asyncio
from collections.abc import Sequence

from bus_schema.conversations import MessageStored
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.lsm import Recorded, RecordExchange
from memory.lsm.recording import Utterance
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, every, on_command, on_event
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.conversations import Conversations
from workers.lsm.answering import answering
from workers.lsm.gaps import Gaps
from workers.lsm.telling import told_of

_AGAIN_S = 2.0
_SETTLE_AGAIN_S = 1.0


class RecordingDesk:
    """The part of long-term memory that listens; it waits for no model."""

    memory: LongTermMemory
    conversations: Conversations
    gaps: Gaps

    @on_command
    async def record(self, command: RecordExchange, context: MessageContext) -> tuple[Recorded | Publish, ...]:
        with answering(context):
            outcome = await self.memory.recorder.record(
                command.chat_id, list(map(Utterance.from_command, command.messages))
            )
        fields = {"raw_log_ids": outcome.raw_log_ids, "episode_id": outcome.episode_id, "new": outcome.new}
        recorded = Recorded.model_validate(fields)
        return (recorded, *told_of(outcome.events))

    @on_event
    async def hear(self, event: MessageStored) -> tuple[Publish, ...]:
        """Every message, as soon as storage has it."""
        note = self.memory.recorder.erasures.count(event.user_id)
        if await self._is_gone(event.user_id, event.message_id):
            logger().info("what was said was forgotten meanwhile", message_id=event.message_id)
            return ()
        worded = await self.conversations.worded(event)
        return await self._take_over(event.user_id, [worded], note)

    @on_event
    async def end_stretch(self, fragment: DialogueFragment) -> tuple[Publish, ...]:
        """What has not been heard by now is in the fragment; then it is known what belongs together."""
        chat_id = fragment.user_id
        note = self.memory.recorder.erasures.count(chat_id)
        if await self._is_gone(chat_id, fragment.message_ids[-1]):
            return ()
        whole = await self.conversations.whole(fragment)
        said = [Utterance.from_storage(message) for message in whole.messages]
        outcome = await self.memory.recorder.take_over(chat_id, said, note)
        if not outcome.raw_log_ids:
            return ()
        ended = await self.memory.segmentation.end(chat_id, fragment.fragment_id, set(outcome.raw_log_ids))
        return told_of([*outcome.events, *ended])

    @every(seconds=0.2)
    async def settle(self) -> tuple[Publish, ...]:
        """One episode after the other, when it is at its end."""
        events = await self.memory.segmentation.step(self.memory.clock())
        if events is None:
            await asyncio.sleep(_SETTLE_AGAIN_S)
        return told_of(events or ())

    @every(seconds=0.5)
    async def fill_gaps(self) -> tuple[Publish, ...]:
        """What was said while nobody listened."""
        try:
            lacking = await self.gaps.step()
        except (TemporaryFailure, Rejected) as trouble:
            logger().warning("gaps in the log wait", reason=str(trouble))
            await asyncio.sleep(_AGAIN_S)
            return ()
        if lacking is None:
            return ()
        return await self._take_over(*lacking)

    async def _take_over(self, user_id: str, messages: Sequence[DialogueMessage], note: int) -> tuple[Publish, ...]:
        said = [Utterance.from_storage(message) for message in messages]
        return told_of((await self.memory.recorder.take_over(user_id, said, note)).events)

    async def _is_gone(self, user_id: str, message_id: str) -> bool:
        """Whoever has a user forgotten asks storage first: what is heard late of a chat of which nothing is left."""
        is_known = await self.memory.queries.is_known(user_id)
        return not is_known and await self.conversations.find(user_id, message_id) is None
