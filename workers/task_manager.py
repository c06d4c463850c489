"""Worker of the task manager: tasks found in conversations, tasks on request, reminders."""

from collections.abc import Sequence
from datetime import time
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

from agents.configuration.model_roles import model_of
from agents.context.preferences import open_preferences
from agents.fragment_reader import FragmentReader
from agents.models.language_model import LanguageModel
from agents.people import KnownPeople
from agents.people_directory import open_people_directory
from agents.present import Present
from agents.reminder_requests import find_reminders
from agents.reminders import digest_of, is_at_minute, reader_of, reminder_of
from agents.task_manager.agent import TaskManager
from agents.task_manager.model_extraction import READING
from agents.task_manager.task_lookup import is_within
from agents.task_manager.tasks import TaskList
from bus_schema.conversations import MessageStored
from bus_schema.dialogue import DialogueFragment, MessageKind, conversation_trace
from bus_schema.envelope import Envelope
from bus_schema.ids import derived
from bus_schema.messages import Event, Message
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task, TasksFound, TaskStatus, TaskUpdate
from bus_schema.task_records import ListTaskRecords, TaskField
from bus_schema.tasks import AddTask, TaskChanged
from config.settings import FleetSettings
from mindbus.bus.handlers import Publish, every, on_event
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.agent_state import AgentStateStore, OutgoingMessage
from mindbus.sdk.dialogue_agent import NoNotes, ProcessingAgent
from mindbus.sdk.users import UserDirectory, colleagues_of
from workers.chat_priority import ChatPriority
from workers.model_calls import ModelCallRecorder
from workers.simulated_users import HeardUsers
from workers.task_commands import TaskCommands
from workers.task_store import ALL_FIELDS, FieldChange, ReaderClocks, TaskStore

_TEAM = "team"
_END_OF_DAY = time(23, 59, 59)
_REMINDS_EVERY_S = 3
_FIELDS: dict[str, tuple[TaskField, ...]] = {
    "found": ALL_FIELDS,
    "done": ("status",),
    "cancelled": ("status",),
    "moved": ("due",),
    "reassigned": ("owner",),
}


class TeamTasks(BaseModel):
    """Former state of the whole team, now records of storage; `heard` are simulated users who have spoken."""

    model_config = ConfigDict(frozen=True)
    book: TaskList = TaskList()
    heard: tuple[str, ...] = ()


class TaskManagerWorker(ProcessingAgent[NoNotes]):
    """Finds tasks user by user; they are rows of storage's, in which changes of several users are merged."""

    name = "task_manager"
    state = NoNotes

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        super().__init__(context)
        settings = context.settings_as(FleetSettings)
        self._model = model or model_of(settings, self.name, ModelCallRecorder(context, self.name))
        self.include(ChatPriority(self.bus, self._model))
        self._reader = FragmentReader(self._model)
        self._roster = open_people_directory(settings.people, settings.sim_dir)
        self._habits = open_preferences(settings.habits)
        self._users = UserDirectory(self.bus, self._habits.zone_of)
        self._clocks = ReaderClocks(self._users, self._habits)
        self._heard = HeardUsers(self.bus, self.name, self._roster)
        self.tasks = TaskStore(self.bus, self._clocks)
        self._is_migrated = False
        self.include(TaskCommands(self.tasks, self._users, self._clocks, self._people, self.clock))

    def order_key(self, message: Message | Envelope) -> str | None:
        """A user's fragments in order; apart from them, requests and reminders, which a model must not hold up."""
        if isinstance(message, MessageStored | AddTask):
            return f"{message.user_id}/now"
        return super().order_key(message)

    async def process(self, fragment: DialogueFragment, state: NoNotes) -> tuple[NoNotes, Sequence[Event]]:
        """Task updates of the fragment, with notifications for those concerned."""
        await self._migrate()
        user, users = await self._users.of(fragment.user_id), await self._users.all()
        present = Present.of(user, fragment.ended_at)
        heard = await self._heard.including(fragment.user_id)
        spoken = " ".join(message.content or "" for message in fragment.heard)
        colleagues = [*colleagues_of(user, users), *self._roster.teammates(user.user_id)]
        known = await self.tasks.concerning(user.user_id, colleagues, fragment.started_at, spoken)
        agent = TaskManager(
            self._reader,
            self._roster.people(heard, users),
            ZoneInfo(present.zone),
            lambda user_id: self._clocks.zone_of(user_id, users),
        )
        book = TaskList(tasks=tuple(sorted(known, key=lambda task: task.found_at)))
        _book, outcome = await agent.process(fragment, book, present)
        return state, outcome.events(TasksFound, self.name, fragment)

    async def apply(self, fragment: DialogueFragment, messages: Sequence[OutgoingMessage]) -> None:
        """Merge the fragment's updates into the tasks that storage keeps."""
        events = (each.event if isinstance(each, Publish) else each for each in messages)
        updates = [update for event in events if isinstance(event, TasksFound) for update in event.items]
        await self.tasks.save(map(_field_change, updates), self.clock())

    @on_event
    async def hear(self, message: MessageStored) -> list[Publish]:
        """Make tasks of what the user asks to be reminded of, at once; the fragment's reading finds them there."""
        is_spoken = message.role == "user" and message.kind in (MessageKind.NATIVE, MessageKind.RESPONSE)
        if not is_spoken or not message.content:
            return []
        user = await self._users.of(message.user_id)
        said_at = message.time.astimezone(ZoneInfo(user.zone or "UTC"))
        requests = find_reminders(message.content, said_at)
        timed = [(each.text, each.due) for each in requests if each.due and each.is_timed]
        if not timed:
            return []
        made = [
            Task(
                task_id=f"task_{derived(message.message_id, 'task', ordinal)}",
                text=text,
                owner=user.name,
                owner_id=user.user_id,
                asked_by=user.user_id,
                due=due.at,
                due_said=due.said[:100],
                remind_at=due.at,
                found_at=message.time,
                changed_at=message.time,
                message_ids=(message.message_id,),
            )
            for ordinal, (text, due) in enumerate(timed)
        ]
        saved = await self._add_new(made, message.message_id)
        return [
            Publish(TaskChanged(user_id=user.user_id, change="found", task=task), message.trace_id) for task in saved
        ]

    async def _add_new(self, made: Sequence[Task], message_id: str) -> list[Task]:
        """Save those of the tasks that no request has made of the same message before."""
        people = await self._people()

        def unknown(known: Sequence[Task]) -> list[Task]:
            return [task for task in made if not _is_among(task, known, people)]

        return await self.tasks.add(made, message_id, unknown, self.clock())

    @every(seconds=_REMINDS_EVERY_S)
    async def remind(self) -> None:
        """Tell of what is due: at the minute where one was named, else in the digest of the reader's morning."""
        await self._migrate()
        now = self.clock()
        due = await self.tasks.due(now)
        digests: set[str] = set()
        for task in due:
            reader = reader_of(task)
            clock = await self._clocks.of(reader)
            if is_at_minute(task, clock, now):
                await self._tell(reminder_of(task, clock, now))
            elif reader not in digests:
                digests.add(reader)
                open_tasks = await self.tasks.all(ListTaskRecords(users=(reader,), status=TaskStatus.OPEN, limit=200))
                digest = digest_of(reader, open_tasks, clock, now)
                await self._tell(digest)
        await self.tasks.settle(due, now)

    async def start(self) -> None:
        await super().start()
        self._reader.join(READING)

    async def stop(self) -> None:
        await super().stop()
        self._reader.leave(READING)
        await self._model.aclose()

    async def _tell(self, notification: NotificationGenerated | None) -> None:
        """Publish under an id that a repetition after a crash has too."""
        if notification is not None:
            message_id = derived(notification.notification_id, notification.wire.type)
            trace = conversation_trace(notification.to_user)
            await self.bus.publish(notification, trace=trace, message_id=message_id)

    async def _people(self) -> KnownPeople:
        return self._roster.people(self._heard.known, await self._users.all())

    async def _migrate(self) -> None:
        """Move the tasks of the former state of the whole team, once."""
        if self._is_migrated:
            return
        store: AgentStateStore[TeamTasks] = AgentStateStore(self.bus, self.name, TeamTasks)
        former, zone = await store.state(_TEAM), ZoneInfo(self._habits.default.zone)
        changes = [
            FieldChange(_with_day(task, zone), ALL_FIELDS, task.changed_at, insert=True) for task in former.book.tasks
        ]
        await self.tasks.save(changes, self.clock())
        for user_id in former.heard:
            await self._heard.add(user_id)
        await store.forget(_TEAM, _TEAM, lambda _state: None)
        self._is_migrated = True


def _field_change(update: TaskUpdate) -> FieldChange:
    is_new = update.change == "found"
    return FieldChange(update.task, _FIELDS[update.change], update.task.changed_at, insert=is_new)


def _is_among(task: Task, known: Sequence[Task], people: KnownPeople) -> bool:
    """Whether another request has made the task of the same message before."""
    others = [each for each in known if each.task_id != task.task_id]
    return any(each.due == task.due or is_within(task.text, each.text, people) for each in others)


def _with_day(task: Task, zone: ZoneInfo) -> Task:
    """A date at the end of a day was said without a time."""
    due = task.due.astimezone(zone) if task.due else None
    if due is None or due.time().replace(microsecond=0) != _END_OF_DAY:
        return task
    return task.model_copy(update={"due_on": due.date()})
