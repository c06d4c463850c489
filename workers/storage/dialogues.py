"""DialogueHandlers, the timeline and the agents' own data."""

from bus_schema.agent_data import AgentDataPage, GetAgentData, PutAgentData, Version
from bus_schema.conversations import (
    ActiveDialogues,
    AnswerRated,
    DialoguePage,
    FragmentSaved,
    GetAllActiveDialogues,
    GetDialogueFragment,
    GetMessage,
    GetMessages,
    ListDialogues,
    MessagePage,
    MessageStored,
    RateAnswer,
    Saved,
    SaveDialogueFragment,
    SaveMessage,
    SaveMessages,
)
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.messages import Cause, Nothing
from bus_schema.replies import ReplyBatch
from bus_schema.timeline import (
    EventsSaved,
    GetTimeline,
    GetTimelineBuckets,
    SaveEvents,
    TimelineBuckets,
    TimelinePage,
)
from mindbus.bus.handlers import Publish, on_command
from mindbus.bus.outcomes import reply_of
from storage_service.service import StorageService


class DialogueHandlers:
    """Handlers of messages, fragments, the timeline and agent data."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def save_message(self, command: SaveMessage) -> Saved | tuple[Saved, Publish]:
        saved = await self._storage.dialogues.save_message(command)
        if not saved.is_new:
            return saved
        return saved, _stored(command)

    @on_command
    async def save_messages(self, command: SaveMessages) -> tuple[ReplyBatch | Publish, ...]:
        outcomes = await self._storage.dialogues.save_messages(command.messages)
        told = [
            _stored(message, cause)
            for message, cause, outcome in zip(command.messages, command.causes, outcomes, strict=True)
            if isinstance(outcome, Saved) and outcome.is_new
        ]
        return ReplyBatch(items=tuple(map(reply_of, outcomes))), *told

    @on_command
    async def rate_answer(self, command: RateAnswer) -> Nothing | tuple[Nothing, Publish]:
        answer = await self._storage.dialogues.rate(command)
        if answer is None:
            return Nothing()
        rated = AnswerRated(
            user_id=answer.user_id,
            message_id=answer.message_id,
            rating=answer.rating,
            rated_at=self._storage.clock(),
            search_id=answer.search_id,
            used=tuple(turn for episode in answer.episodes for turn in episode.used),
        )
        return Nothing(), Publish(rated, trace=answer.trace_id)

    @on_command
    async def message(self, query: GetMessage) -> DialogueMessage:
        return await self._storage.dialogues.message(query)

    @on_command
    async def messages(self, query: GetMessages) -> MessagePage:
        return await self._storage.dialogues.messages(query)

    @on_command
    async def save_fragment(self, command: SaveDialogueFragment) -> FragmentSaved:
        await self._storage.dialogues.save_fragment(command.fragment)
        return FragmentSaved(fragment_id=command.fragment.fragment_id)

    @on_command
    async def fragment(self, query: GetDialogueFragment) -> DialogueFragment:
        return await self._storage.dialogues.fragment(query)

    @on_command
    async def active_dialogues(self, query: GetAllActiveDialogues) -> ActiveDialogues:
        return await self._storage.dialogues.active(query)

    @on_command
    async def dialogues(self, query: ListDialogues) -> DialoguePage:
        return await self._storage.dialogues.page(query)

    @on_command
    async def save_events(self, command: SaveEvents) -> EventsSaved:
        return EventsSaved(count=await self._storage.timeline.save(command.events))

    @on_command
    async def timeline(self, query: GetTimeline) -> TimelinePage:
        return await self._storage.timeline.page(query)

    @on_command
    async def timeline_buckets(self, query: GetTimelineBuckets) -> TimelineBuckets:
        return await self._storage.timeline.buckets(query)

    @on_command
    async def put_agent_data(self, command: PutAgentData) -> Version:
        return Version(version=await self._storage.agent_data.put(command))

    @on_command
    async def get_agent_data(self, query: GetAgentData) -> AgentDataPage:
        return await self._storage.agent_data.page(query)


def _stored(message: DialogueMessage, cause: Cause | None = None) -> Publish:
    return Publish(MessageStored.model_validate(message.model_dump()), trace=message.trace_id, cause=cause)
