"""Worker of the context manager: facts by user, kept by storage, and summaries for each user."""

from collections.abc import Iterable, Sequence
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

from agents.configuration.model_roles import model_of
from agents.context.preferences import open_preferences
from agents.context_manager.agent import ContextManager, facts_for, memory_commands, relevant_facts, with_speaker
from agents.context_manager.extraction import READING
from agents.context_manager.knowledge import FactBase
from agents.fragment_reader import FragmentReader
from agents.models.language_model import LanguageModel
from agents.people_directory import open_people_directory
from agents.present import Present
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.envelope import Envelope
from bus_schema.facts import (
    MAX_SAVED,
    MAX_USERS,
    FactPage,
    FindFacts,
    LearnFacts,
    LearntFacts,
    ListFactRecords,
    ListFacts,
    RankedFacts,
    SaveFacts,
)
from bus_schema.ids import derived
from bus_schema.messages import Event, Message
from bus_schema.processing import ContextUpdated, Fact
from config.settings import FleetSettings
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, Send, on_command
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.agent_state import AgentStateStore, OutgoingMessage
from mindbus.sdk.dialogue_agent import NoNotes, ProcessingAgent
from mindbus.sdk.recall import ContextItem, UserContexts
from mindbus.sdk.requests import items_of, request_in_scope
from mindbus.sdk.users import UserDirectory, colleagues_of
from workers.chat_priority import ChatPriority
from workers.model_calls import ModelCallRecorder
from workers.simulated_users import HeardUsers

_TEAM = "team"
_PAGE = 200
# As many facts of others as a user's statement is compared with.
_MOST_OF_OTHERS = 500


class TeamKnowledge(BaseModel):
    """Former state of the whole team, now records of storage; `heard` are simulated users who have spoken."""

    model_config = ConfigDict(frozen=True)
    knowledge: FactBase = FactBase()
    heard: tuple[str, ...] = ()


class ContextManagerWorker(ProcessingAgent[NoNotes]):
    """Reads each user's fragments in order, users in parallel; those shared with a project are compared."""

    name = "context_manager"
    state = NoNotes

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        super().__init__(context)
        settings = context.settings_as(FleetSettings)
        self._model = model or model_of(settings, self.name, ModelCallRecorder(context, self.name))
        self.include(ChatPriority(self.bus, self._model))
        self._reader = FragmentReader(self._model)
        self._roster = open_people_directory(settings.people, settings.sim_dir)
        self._users = UserDirectory(self.bus, open_preferences(settings.habits).zone_of)
        self._heard = HeardUsers(self.bus, self.name, self._roster)
        self._pictures = UserContexts(self.bus)
        self._is_migrated = False

    async def process(self, fragment: DialogueFragment, state: NoNotes) -> tuple[NoNotes, Sequence[Event]]:
        """Facts that became known or superseded, with notifications for those who stated the superseded ones."""
        await self._migrate()
        heard = await self._heard.including(fragment.user_id)
        present = Present.of(await self._users.of(fragment.user_id), fragment.ended_at)
        people = self._roster.people(heard, await self._users.all())
        agent = ContextManager(self._reader, people, ZoneInfo(present.zone))
        _knowledge, outcome = await agent.process(fragment, await self._known_to(fragment.user_id), present)
        return state, outcome.events(ContextUpdated, self.name, fragment)

    async def apply(self, fragment: DialogueFragment, messages: Sequence[OutgoingMessage]) -> None:
        """Merge the facts into those that storage keeps."""
        facts = {update.fact.fact_id: update.fact for event in _updates(messages) for update in event.items}
        await self._save(tuple(facts.values()))

    def orders(self, fragment: DialogueFragment, messages: Sequence[OutgoingMessage]) -> Sequence[Send]:
        updates = _updates(messages)
        return [Send(learned) for event in updates for learned in memory_commands(event.items, fragment, self.name)]

    async def after(self, fragment: DialogueFragment) -> None:
        """Replace the user's summary."""
        await self._replace_summary(fragment.user_id)

    async def forgotten(self, user_id: str) -> None:
        """Update the summaries of other users, which held facts of this one; storage deletes the facts."""
        await self._migrate(without=user_id)
        async for other in self._pictures.users():
            if other != user_id:
                await self._replace_summary(other, without=user_id)

    async def start(self) -> None:
        await super().start()
        self._reader.join(READING)

    async def stop(self) -> None:
        await super().stop()
        self._reader.leave(READING)
        await self._model.aclose()

    def order_key(self, message: Message | Envelope) -> str | None:
        return self.key(message.user_id) if isinstance(message, LearnFacts) else super().order_key(message)

    @on_command
    async def learn(self, command: LearnFacts, context: MessageContext) -> tuple[LearntFacts | OutgoingMessage, ...]:
        """Read a conversation as a fragment of its own, which nobody else is told of."""
        messages = await self.process_fragment(_fragment_of(command), context)
        learnt = tuple(update for event in _updates(messages) for update in event.items)
        return LearntFacts(items=learnt), *messages

    @on_command
    async def list_facts(self, query: ListFacts, context: MessageContext) -> FactPage:
        await self._migrate()
        user_id = context.acts_for(query.user_id)
        users = (user_id,) if user_id else ()
        fields = query.model_dump(exclude={"user_id"})
        return await request_in_scope(self.bus, ListFactRecords(users=users, **fields))

    @on_command
    async def find_facts(self, query: FindFacts, context: MessageContext) -> RankedFacts:
        await self._migrate()
        user_id = context.acts_for(query.user_id) or query.user_id
        known = await self._known_to(user_id)
        reader = await self._users.of(user_id)
        return RankedFacts(items=relevant_facts(reader, known, query.about, query.limit))

    async def _known_to(self, user_id: str) -> FactBase:
        """All current facts of the user, with the newest that others have shared with a project of theirs."""
        own = [fact async for fact in items_of(self.bus, ListFactRecords(users=(user_id,), limit=_PAGE))]
        user, users = await self._users.of(user_id), await self._users.all()
        colleagues = tuple(colleagues_of(user, users))[:MAX_USERS]
        shared: list[Fact] = []
        if colleagues:
            async for fact in items_of(self.bus, ListFactRecords(users=colleagues, shared=True, limit=_PAGE)):
                if fact.is_shared_with(user.projects):
                    shared.append(fact)
                if len(shared) >= _MOST_OF_OTHERS:
                    break
        return FactBase.of((*own, *shared))

    async def _replace_summary(self, user_id: str, without: str | None = None) -> None:
        known = await self._known_to(user_id)
        people = self._roster.people(self._heard.known, await self._users.all())
        reader = await self._users.of(user_id)
        facts = facts_for(reader, known.without(without) if without else known)
        now = Present.of(reader, self.clock()).now
        items = (ContextItem(id=fact.fact_id, text=with_speaker(fact, user_id, people, now)) for fact in facts)
        await self._pictures.replace(user_id, items)

    async def _migrate(self, without: str | None = None) -> None:
        """Move the facts of the former state of the whole team, once."""
        if self._is_migrated:
            return
        store: AgentStateStore[TeamKnowledge] = AgentStateStore(self.bus, self.name, TeamKnowledge)
        former = await store.state(_TEAM)
        await self._save([fact for fact in former.knowledge.facts if fact.said_by != without])
        for user_id in former.heard:
            if user_id != without:
                await self._heard.add(user_id)
        await store.forget(_TEAM, _TEAM, lambda _state: None)
        self._is_migrated = True

    async def _save(self, facts: Sequence[Fact]) -> None:
        """Merge facts into the records; repeating it changes nothing."""
        for start in range(0, len(facts), MAX_SAVED):
            await request_in_scope(self.bus, SaveFacts(facts=tuple(facts[start : start + MAX_SAVED])))


def _fragment_of(command: LearnFacts) -> DialogueFragment:
    said = [
        DialogueMessage(
            message_id=each.message_id or f"msg_{derived(each.content, each.role, each.time.isoformat())}",
            user_id=command.user_id,
            role=each.role,
            content=each.content,
            time=each.time,
        )
        for each in command.messages
    ]
    ids = tuple(each.message_id for each in said)
    return DialogueFragment(
        fragment_id=f"frag_{derived(command.user_id, *ids)}",
        user_id=command.user_id,
        message_ids=ids,
        messages=tuple(said),
        started_at=said[0].time,
        ended_at=said[-1].time,
        reason="ended",
    )


def _updates(messages: Iterable[OutgoingMessage]) -> list[ContextUpdated]:
    events = (each.event if isinstance(each, Publish) else each for each in messages)
    return [event for event in events if isinstance(event, ContextUpdated)]
