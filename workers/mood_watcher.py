"""Worker of the mood watcher: assesses the tone of what users say."""

from collections.abc import Sequence

from agents.models.language_model import LanguageModel
from agents.models.selection import model_of
from agents.mood_watcher import MoodHistory, MoodWatcher
from bus_schema.dialogue import DialogueFragment
from bus_schema.messages import Event
from bus_schema.processing import MoodAssessed
from config.settings import FleetSettings
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.dialogue_agent import ProcessingAgent


class MoodWatcherWorker(ProcessingAgent[MoodHistory]):
    """Assesses moods, with a history for each user."""

    name = "mood_watcher"
    state = MoodHistory

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        super().__init__(context)
        self._model = model or model_of(context.settings_as(FleetSettings))
        self._agent = MoodWatcher(self._model)

    async def process(self, fragment: DialogueFragment, state: MoodHistory) -> tuple[MoodHistory, Sequence[Event]]:
        """The user's mood, with a notification for a sharp turn."""
        state, outcome = await self._agent.process(fragment, state)
        return state, outcome.events(MoodAssessed, self.name, fragment)

    async def stop(self) -> None:
        await super().stop()
        await self._model.aclose()
