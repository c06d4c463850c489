"""Worker of the context manager: facts of the team and summaries for each user."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

from agents.configuration.model_roles import model_of
from agents.context.preferences import open_preferences
from agents.context_manager.agent import ContextManager, big_picture, memory_commands
from agents.context_manager.extraction import READING
from agents.context_manager.knowledge import FactBase
from agents.fragment_reader import FragmentReader
from agents.models.language_model import LanguageModel
from agents.people_directory import open_people_directory
from agents.present import Present
from bus_schema.dialogue import DialogueFragment
from bus_schema.messages import Event
from bus_schema.processing import ContextUpdated
from config.settings import FleetSettings
from mindbus.bus.handlers import Publish, Send
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.agent_state import OutgoingMessage
from mindbus.sdk.dialogue_agent import ProcessingAgent
from mindbus.sdk.recall import ContextItem, UserContexts
from mindbus.sdk.users import UserDirectory
from workers.chat_priority import ChatPriority

_TEAM = "team"


class TeamKnowledge(BaseModel):
    """Facts of the whole team; `heard` are users who have spoken."""

    model_config = ConfigDict(frozen=True)
    knowledge: FactBase = FactBase()
    heard: tuple[str, ...] = ()


class ContextManagerWorker(ProcessingAgent[TeamKnowledge]):
    """Keeps one fact base for the whole team, and a summary of it for each user, which the assistant is shown."""

    name = "context_manager"
    state = TeamKnowledge

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        super().__init__(context)
        settings = context.settings_as(FleetSettings)
        self._model = model or model_of(settings, self.name)
        self.include(ChatPriority(self.bus, self._model))
        self._reader = FragmentReader(self._model)
        self._roster = open_people_directory(settings.people, settings.sim_dir)
        self._users = UserDirectory(self.bus, open_preferences(settings.habits).zone_of)
        self._pictures = UserContexts(self.bus)

    def key(self, user_id: str) -> str:
        return _TEAM

    async def process(self, fragment: DialogueFragment, state: TeamKnowledge) -> tuple[TeamKnowledge, Sequence[Event]]:
        """Facts that became known or superseded, with notifications for those who stated the superseded ones."""
        heard = self._roster.having_heard(state.heard, fragment.user_id)
        present = Present.of(await self._users.of(fragment.user_id), self.clock())
        people = self._roster.people(heard, await self._users.all())
        agent = ContextManager(self._reader, people, ZoneInfo(present.zone))
        knowledge, outcome = await agent.process(fragment, state.knowledge, present)
        return TeamKnowledge(knowledge=knowledge, heard=heard), outcome.events(ContextUpdated, self.name, fragment)

    def orders(self, fragment: DialogueFragment, said: Sequence[OutgoingMessage]) -> Sequence[Send]:
        updated = (each.event for each in said if isinstance(each, Publish) and isinstance(each.event, ContextUpdated))
        return [Send(learned) for event in updated for learned in memory_commands(event.items, fragment, self.name)]

    async def after(self, fragment: DialogueFragment) -> None:
        """Replace the user's summary."""
        known = (await self.state_store.state(_TEAM)).knowledge
        await self._replace_summary(fragment.user_id, known)

    def without(self, state: TeamKnowledge, user_id: str) -> tuple[TeamKnowledge, dict[str, int]]:
        knowledge = state.knowledge.without(user_id)
        heard = tuple(each for each in state.heard if each != user_id)
        gone = len(state.knowledge.facts) - len(knowledge.facts)
        return TeamKnowledge(knowledge=knowledge, heard=heard), {"facts": gone}

    async def forgotten(self, user_id: str) -> None:
        """Update the summaries of other users, which held facts of this one."""
        known = (await self.state_store.state(_TEAM)).knowledge
        async for other in self._pictures.users():
            if other != user_id:
                await self._replace_summary(other, known)

    async def start(self) -> None:
        await super().start()
        self._reader.join(READING)

    async def stop(self) -> None:
        await super().stop()
        self._reader.leave(READING)
        await self._model.aclose()

    async def _replace_summary(self, user_id: str, known: FactBase) -> None:
        facts = big_picture(known, user_id)
        await self._pictures.replace(user_id, (ContextItem(id=fact.fact_id, text=fact.text) for fact in facts))
