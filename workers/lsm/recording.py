"""Takes down what is said, whether it is told or heard."""

from collections.abc import Iterable

from bus_schema.conversations import MessageStored
from bus_schema.dialogue import DialogueMessage, conversation_trace
from bus_schema.lsm import Recorded, RecordExchange
from memory.lsm.recording import RecordingEvent, Said
from memory.lsm.service import LongTermMemory
from mindbus.bus.handlers import Told, on_command, on_event
from mindbus.bus.handling import Handling
from mindbus.logs import logger
from mindbus.sdk.conversations import Conversations
from workers.lsm.answering import answering


class RecordingDesk:
    """The part of long-term memory that listens; it waits for no model."""

    memory: LongTermMemory
    conversations: Conversations

    @on_command
    async def record(self, command: RecordExchange, handling: Handling) -> tuple[Recorded | Told, ...]:
        with answering(handling):
            outcome = await self.memory.recording.record(command.chat_id, list(map(Said.told, command.messages)))
        recorded = Recorded.model_validate({"raw_log_ids": outcome.raw_log_ids, "episode_id": outcome.episode_id})
        return (recorded, *told_of(outcome.events))

    @on_event
    async def hear(self, event: MessageStored, handling: Handling) -> tuple[Told, ...]:
        """Every message, as soon as storage has it."""
        if not await self.memory.reading.is_known(event.user_id) and await self._is_gone(event):
            logger().info("what was said was forgotten meanwhile", message_id=event.message_id)
            return ()
        worded = await self.conversations.worded(event)
        with answering(handling):
            outcome = await self.memory.recording.record(event.user_id, [Said.heard(worded)])
        return told_of(outcome.events)

    async def _is_gone(self, message: DialogueMessage) -> bool:
        """Whoever has a user forgotten asks storage first: what is heard late of a chat of which nothing is left."""
        return await self.conversations.find(message.user_id, message.message_id) is None


def told_of(events: Iterable[RecordingEvent]) -> tuple[Told, ...]:
    """Each in the trace of its dialogue."""
    return tuple(Told(event, conversation_trace(event.chat_id)) for event in events)
