"""Worker of the context agent: decides which notifications users get, and when."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from agents.configuration.model_roles import model_of
from agents.context.decisions import ContextAgent, Rulings
from agents.context.preferences import DecisionContext, open_preferences
from agents.context.state import (
    Delivery,
    NotificationDecision,
    NotificationState,
    settled_by_facts,
    settled_by_moods,
    settled_by_tasks,
)
from agents.models.language_model import LanguageModel
from agents.models.prompt import PresentModel
from agents.present import Present
from bus_schema.data import DeleteUser, Removed
from bus_schema.dialogue import DeliverNotification, DialogueMessage, conversation_trace
from bus_schema.envelope import Envelope
from bus_schema.messages import Message
from bus_schema.notification import NotificationDeferred, NotificationGenerated, NotificationIgnored, ReviewDesk
from bus_schema.processing import ContextUpdated, MoodAssessed, TasksFound
from bus_schema.tasks import TaskChanged
from config.settings import FleetSettings
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, Send, background, on_command, on_event
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.sdk.agent_state import AgentStateStore, OutgoingMessage
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.conversations import Conversations
from mindbus.sdk.users import UserDirectory
from workers.chat_priority import ChatPriority
from workers.model_calls import ModelCallRecorder
from workers.simulated_users import SimulatedTime

_TALK_MESSAGES = 12
_LOOKS_S = 0.5
_LOOKS_THROUGH_ALL = timedelta(seconds=60)
_ASKS_AGAIN = timedelta(seconds=30)
Rule = Callable[[ContextAgent, NotificationState, DecisionContext, Sequence[DialogueMessage]], Awaitable[Rulings]]


class ContextWorker(Worker):
    """Decides what a user is told, when, in which words; everybody has a state, which storage keeps."""

    name = "context"
    start_stage = 2
    concurrency = 64

    def __init__(self, worker_context: WorkerContext, model: LanguageModel | None = None) -> None:
        settings = worker_context.settings_as(FleetSettings)
        self._bus = worker_context.bus.acting_as(self.identity, service=self.name)
        self._clock = worker_context.clock
        self._model = model or model_of(settings, self.name, ModelCallRecorder(worker_context, self.name))
        self.include(ChatPriority(worker_context.bus, self._model))
        self._habits = open_preferences(settings.habits)
        self._users = UserDirectory(self._bus, self._habits.zone_of)
        self._simulated_time = SimulatedTime(self._bus, self._clock, settings.sim_dir)
        self._artifacts = open_artifacts(self._bus, settings, worker_context.clock)
        self._talks = Conversations(self._bus, self._artifacts, largest_inline_bytes=settings.max_body_bytes // 2)
        self._states = AgentStateStore(self._bus, self.name, NotificationState)
        self._due: dict[str, datetime] = {}
        self._next_look = worker_context.clock()

    @property
    def identity(self) -> str:
        return f"agent.{self.name}"

    def order_key(self, message: Message | Envelope) -> str | None:
        """One decision about a user after the other."""
        if isinstance(message, NotificationGenerated):
            return message.to_user
        if isinstance(message, ReviewDesk | TasksFound | TaskChanged | ContextUpdated | MoodAssessed | DeleteUser):
            return message.user_id
        return None

    async def start(self) -> None:
        await self._artifacts.start()

    async def stop(self) -> None:
        await self._artifacts.stop()
        await self._model.aclose()

    @on_event
    async def decide(
        self, notification: NotificationGenerated, message_context: MessageContext
    ) -> list[OutgoingMessage]:
        """Deliver, defer, merge or ignore."""
        return await self._decide(
            notification.to_user,
            lambda agent, state, moment, talk: agent.handle(notification, state, moment, talk),
            message_context,
        )

    @on_command
    async def review(self, command: ReviewDesk, message_context: MessageContext) -> list[OutgoingMessage]:
        """Decide anew about what has waited long enough."""
        return await self._decide(command.user_id, ContextAgent.review, message_context)

    @on_command
    async def delete_user(self, command: DeleteUser, message_context: MessageContext) -> Removed:
        """Clear the user's state; what waited there waits no more."""
        cleared: list[NotificationState] = []
        await self._states.forget(command.user_id, command.user_id, cleared.append)
        self._due.pop(command.user_id, None)
        return Removed.of({"desks": len(cleared)})

    @on_event
    async def settle_tasks(self, event: TasksFound, message_context: MessageContext) -> None:
        tasks = [update.task for update in event.items]
        users = {user for task in tasks for user in (task.asked_by, task.owner_id) if user}
        await self._settle({event.user_id, *users}, settled_by_tasks(event.items), message_context)

    @on_event
    async def settle_changed_task(self, event: TaskChanged, message_context: MessageContext) -> None:
        users = {user for user in (event.user_id, event.task.asked_by, event.task.owner_id) if user}
        if event.change in ("done", "cancelled"):
            await self._settle(users, (event.task.task_id,), message_context)
        elif event.change == "reopened":
            for user_id in sorted(users):
                reopened = partial(_without_settled, (event.task.task_id,))
                await self._states.process_once(user_id, message_context.message_id, reopened)

    @on_event
    async def settle_facts(self, event: ContextUpdated, message_context: MessageContext) -> None:
        users = {event.user_id, *(update.fact.said_by for update in event.items)}
        await self._settle(users, settled_by_facts(event.items), message_context)

    @on_event
    async def settle_moods(self, event: MoodAssessed, message_context: MessageContext) -> None:
        await self._settle({event.user_id}, settled_by_moods(event.items), message_context)

    @background(pause_s=_LOOKS_S)
    async def request_reviews(self) -> None:
        """Request a review of every user with a notification that is due."""
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + _LOOKS_THROUGH_ALL
            async for user_id, state in self._states.states():
                self._note_due(user_id, state)
        for user_id in [user_id for user_id, due in self._due.items() if due <= now]:
            self._due[user_id] = now + _ASKS_AGAIN
            await self._bus.send(ReviewDesk(user_id=user_id), trace=conversation_trace(user_id))

    async def _decide(self, user_id: str, rule: Rule, message_context: MessageContext) -> list[OutgoingMessage]:
        talk, user = await self._talks.recent(user_id, _TALK_MESSAGES), await self._users.of(user_id)
        simulation = await self._simulated_time.of(user_id, self._habits.of(user.user_id, user.zone).zone)
        spoken = [message.time for message in talk if message.role == "user" and message.kind != "hidden"]

        async def decided(state: NotificationState) -> tuple[NotificationState, Sequence[OutgoingMessage]]:
            agent = ContextAgent(PresentModel(self._model, Present.of(user, self._clock())))
            habits = self._habits.of(user.user_id, user.zone)
            moment = DecisionContext(self._clock(), habits, max(spoken, default=None), simulation)
            state, decisions, delivery = await rule(agent, state, moment, talk)
            self._note_due(user_id, state)
            news = [each for decision in decisions for each in _news(user_id, decision)]
            return state, news if delivery is None else [*news, _order(delivery)]

        return await self._states.process_once(user_id, message_context.message_id, decided)

    def _note_due(self, user_id: str, state: NotificationState) -> None:
        if state.next_due is None:
            self._due.pop(user_id, None)
        else:
            self._due[user_id] = state.next_due

    async def _settle(self, users: Iterable[str], settled: tuple[str, ...], message_context: MessageContext) -> None:
        for user_id in sorted(users) if settled else ():
            await self._states.process_once(user_id, message_context.message_id, partial(_with_settled, settled))


async def _with_settled(
    settled: tuple[str, ...], state: NotificationState
) -> tuple[NotificationState, Sequence[OutgoingMessage]]:
    return state.with_settled(settled), ()


async def _without_settled(
    reopened: tuple[str, ...], state: NotificationState
) -> tuple[NotificationState, Sequence[OutgoingMessage]]:
    return state.without_settled(reopened), ()


def _news(user_id: str, decision: NotificationDecision) -> Iterable[Publish]:
    about = {"notification_id": decision.notification_id, "to_user": user_id, "reason": decision.reason}
    trace = conversation_trace(user_id)
    if decision.verdict == "ignore":
        yield Publish(NotificationIgnored.model_validate(about), trace)
    elif decision.until is not None:
        yield Publish(NotificationDeferred.model_validate(about | {"until": decision.until}), trace)


def _order(delivery: Delivery) -> Send:
    command = DeliverNotification(
        user_id=delivery.to_user,
        message=delivery.message,
        context=delivery.context,
        notification_id=delivery.notification_id,
        merged=delivery.merged,
    )
    return Send(command, "dialogue", conversation_trace(delivery.to_user))
