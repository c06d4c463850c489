"""Worker of the mood watcher: assesses the tone of what users say."""

from collections.abc import Sequence

from agents.configuration.model_roles import model_of
from agents.context.preferences import open_preferences
from agents.fragment_reader import FragmentReader
from agents.models.language_model import LanguageModel
from agents.mood_watcher import READING, MoodHistory, MoodWatcher
from agents.present import Present
from bus_schema.dialogue import DialogueFragment
from bus_schema.messages import Event
from bus_schema.processing import MoodAssessed
from config.settings import FleetSettings
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.dialogue_agent import ProcessingAgent
from mindbus.sdk.users import UserDirectory
from workers.chat_priority import ChatPriority
from workers.model_calls import ModelCallRecorder


class MoodWatcherWorker(ProcessingAgent[MoodHistory]):
    """Assesses moods, with a history for each user."""

    name = "mood_watcher"
    state = MoodHistory

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        super().__init__(context)
        settings = context.settings_as(FleetSettings)
        self._model = model or model_of(settings, self.name, ModelCallRecorder(context, self.name))
        self.include(ChatPriority(self.bus, self._model))
        self._reader = FragmentReader(self._model)
        self._users = UserDirectory(self.bus, open_preferences(settings.habits).zone_of)

    async def process(self, fragment: DialogueFragment, state: MoodHistory) -> tuple[MoodHistory, Sequence[Event]]:
        """The user's mood, with a notification for a sharp turn."""
        present = Present.of(await self._users.of(fragment.user_id), fragment.ended_at)
        state, outcome = await MoodWatcher(self._reader).process(fragment, state, present)
        return state, outcome.events(MoodAssessed, self.name, fragment)

    async def start(self) -> None:
        await super().start()
        self._reader.join(READING)

    async def stop(self) -> None:
        await super().stop()
        self._reader.leave(READING)
        await self._model.aclose()
