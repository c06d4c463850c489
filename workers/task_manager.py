"""Worker of the task manager: tasks of the team and reminders of them."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

from agents.context.preferences import open_preferences
from agents.models.language_model import LanguageModel
from agents.models.selection import model_of
from agents.people_directory import open_people_directory
from agents.task_manager.agent import TaskManager
from agents.task_manager.tasks import TaskList
from bus_schema.dialogue import DialogueFragment, conversation_trace
from bus_schema.messages import Event
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import TasksFound
from config.settings import FleetSettings
from mindbus.bus.handlers import every
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.dialogue_agent import ProcessingAgent

_TEAM = "team"
_LOOKS_AT_DUE_DATES_S = 30


class TeamTasks(BaseModel):
    """The tasks of all, since people speak of each other's; `heard` are those who have spoken."""

    model_config = ConfigDict(frozen=True)
    book: TaskList = TaskList()
    heard: tuple[str, ...] = ()


class TaskManagerWorker(ProcessingAgent[TeamTasks]):
    """Keeps one task list for the whole team."""

    name = "task_manager"
    state = TeamTasks

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        super().__init__(context)
        settings = context.settings_as(FleetSettings)
        self._model = model or model_of(settings)
        self._roster = open_people_directory(settings.people, settings.sim_dir)
        self._zone = ZoneInfo(open_preferences(settings.habits).default.zone)

    def key(self, user_id: str) -> str:
        return _TEAM

    async def process(self, fragment: DialogueFragment, state: TeamTasks) -> tuple[TeamTasks, Sequence[Event]]:
        """Task updates of the fragment, with notifications for those concerned."""
        heard = self._roster.having_heard(state.heard, fragment.user_id)
        book, outcome = await self._agent(heard).process(fragment, state.book)
        return TeamTasks(book=book, heard=heard), outcome.events(TasksFound, self.name, fragment)

    def without(self, state: TeamTasks, user_id: str) -> tuple[TeamTasks, dict[str, int]]:
        book = state.book.without(user_id)
        heard = tuple(each for each in state.heard if each != user_id)
        return TeamTasks(book=book, heard=heard), {"tasks": len(state.book.tasks) - len(book.tasks)}

    @every(seconds=_LOOKS_AT_DUE_DATES_S)
    async def remind(self) -> None:
        await self.state_store.publish_due(_TEAM, self._reminded, self._tell)

    async def stop(self) -> None:
        await super().stop()
        await self._model.aclose()

    def _agent(self, heard: tuple[str, ...]) -> TaskManager:
        return TaskManager(self._model, self._roster.people(heard), self._zone)

    def _reminded(self, state: TeamTasks) -> tuple[TeamTasks, Sequence[Event]]:
        book, reminders = self._agent(state.heard).remind(state.book, self.clock())
        return state.model_copy(update={"book": book}), reminders

    async def _tell(self, event: Event) -> None:
        to_user = event.to_user if isinstance(event, NotificationGenerated) else None
        await self.bus.publish(event, trace=conversation_trace(to_user) if to_user else None)
