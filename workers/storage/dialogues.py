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
from mindbus.bus.handlers import Told, on_command
from mindbus.bus.handling import Handling
from storage_service.service import StorageService
from workers.storage.answering import answering


class DialogueDesk:
    """The part of storage that keeps what was said, what has happened."""

    storage: StorageService

    @on_command
    async def save_message(self, command: SaveMessage, handling: Handling) -> Saved | tuple[Saved, Told]:
        with answering(handling):
            saved = await self.storage.messages.save(command)
        if not saved.is_new:
            return saved
        return saved, Told(MessageStored.model_validate(command.model_dump()), trace=command.trace_id)

    @on_command
    async def message(self, query: GetMessage, handling: Handling) -> DialogueMessage:
        with answering(handling):
            return await self.storage.messages.get(query)

    @on_command
    async def messages(self, query: GetMessages, handling: Handling) -> MessagePage:
        with answering(handling):
            return await self.storage.messages.page(query)

    @on_command
    async def save_fragment(self, command: SaveDialogueFragment, handling: Handling) -> FragmentSaved:
        with answering(handling):
            await self.storage.fragments.save(command.fragment)
        return FragmentSaved(fragment_id=command.fragment.fragment_id)

    @on_command
    async def fragment(self, query: GetDialogueFragment, handling: Handling) -> DialogueFragment:
        with answering(handling):
            return await self.storage.fragments.get(query)

    @on_command
    async def active_dialogues(self, query: GetAllActiveDialogues, handling: Handling) -> ActiveDialogues:
        with answering(handling):
            return await self.storage.fragments.active(query)

    @on_command
    async def dialogues(self, query: ListDialogues, handling: Handling) -> DialoguePage:
        with answering(handling):
            return await self.storage.roster.page(query)

    @on_command
    async def save_events(self, command: SaveEvents, handling: Handling) -> EventsSaved:
        with answering(handling):
            return EventsSaved(count=await self.storage.timeline.save(command.events))

    @on_command
    async def timeline(self, query: GetTimeline, handling: Handling) -> TimelinePage:
        with answering(handling):
            return await self.storage.timeline.page(query)

    @on_command
    async def put_agent_data(self, command: PutAgentData, handling: Handling) -> Version:
        with answering(handling):
            return Version(version=await self.storage.agent_data.put(command))

    @on_command
    async def get_agent_data(self, query: GetAgentData, handling: Handling) -> AgentDataPage:
        with answering(handling):
            return await self.storage.agent_data.page(query)
