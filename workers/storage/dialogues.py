"""Answers for dialogues, the timeline, the agents' own data."""

from bus_schema.agent_data import AgentDataPage, GetAgentData, PutAgentData, Version
from bus_schema.conversations import (
    ActiveDialogues,
    DialoguePage,
    FragmentSaved,
    GetAllActiveDialogues,
    GetDialogueFragment,
    GetMessage,
    GetMessages,
    ListDialogues,
    MessagePage,
    MessageStored,
    Saved,
    SaveDialogueFragment,
    SaveMessage,
)
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.timeline import EventsSaved, GetTimeline, SaveEvents, TimelinePage
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, on_command
from storage_service.service import StorageService
from workers.storage.answering import answering


class DialogueDesk:
    """The part of storage that keeps what was said, what has happened."""

    storage: StorageService

    @on_command
    async def save_message(self, command: SaveMessage, context: MessageContext) -> Saved | tuple[Saved, Publish]:
        with answering(context):
            saved = await self.storage.messages.save(command)
        if not saved.is_new:
            return saved
        return saved, Publish(MessageStored.model_validate(command.model_dump()), trace=command.trace_id)

    @on_command
    async def message(self, query: GetMessage, context: MessageContext) -> DialogueMessage:
        with answering(context):
            return await self.storage.messages.get(query)

    @on_command
    async def messages(self, query: GetMessages, context: MessageContext) -> MessagePage:
        with answering(context):
            return await self.storage.messages.page(query)

    @on_command
    async def save_fragment(self, command: SaveDialogueFragment, context: MessageContext) -> FragmentSaved:
        with answering(context):
            await self.storage.fragments.save(command.fragment)
        return FragmentSaved(fragment_id=command.fragment.fragment_id)

    @on_command
    async def fragment(self, query: GetDialogueFragment, context: MessageContext) -> DialogueFragment:
        with answering(context):
            return await self.storage.fragments.get(query)

    @on_command
    async def active_dialogues(self, query: GetAllActiveDialogues, context: MessageContext) -> ActiveDialogues:
        with answering(context):
            return await self.storage.fragments.active(query)

    @on_command
    async def dialogues(self, query: ListDialogues, context: MessageContext) -> DialoguePage:
        with answering(context):
            return await self.storage.dialogues.page(query)

    @on_command
    async def save_events(self, command: SaveEvents, context: MessageContext) -> EventsSaved:
        with answering(context):
            return EventsSaved(count=await self.storage.timeline.save(command.events))

    @on_command
    async def timeline(self, query: GetTimeline, context: MessageContext) -> TimelinePage:
        with answering(context):
            return await self.storage.timeline.page(query)

    @on_command
    async def put_agent_data(self, command: PutAgentData, context: MessageContext) -> Version:
        with answering(context):
            return Version(version=await self.storage.agent_data.put(command))

    @on_command
    async def get_agent_data(self, query: GetAgentData, context: MessageContext) -> AgentDataPage:
        with answering(context):
            return await self.storage.agent_data.page(query)
