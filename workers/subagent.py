"""A sub-agent that thinks with a language model and tools."""

from abc import abstractmethod
from collections.abc import Sequence

from agents.configuration.model_roles import model_of
from agents.configuration.prompts import Guide
from agents.context.preferences import open_preferences
from agents.models.conversation import TALK, history_calls, model_messages
from agents.models.language_model import LanguageModel, ModelMessage, ToolCall
from agents.models.prompt import Material, PresentModel
from agents.present import Present
from agents.subagents.loop import BoundTool, Toolbox, ToolLoop
from bus_schema.history import sanitise_text
from config.settings import FleetSettings
from language.words import Language, language_of
from mindbus.bus.context import sent_at
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.subagent import Delegated, SubAgent
from mindbus.sdk.users import UserDirectory
from workers.model_calls import ModelCallRecorder

_MOST_ROUNDS = 8
_STATUS_CHARS = 200


class ThinkingSubagent(SubAgent):
    """Base of sub-agents with a language model: takes a guide; override `instruments` to give it tools for a task."""

    most_rounds = _MOST_ROUNDS

    def __init__(self, context: WorkerContext, guide: Guide, model: LanguageModel | None = None) -> None:
        super().__init__(context)
        settings = context.settings_as(FleetSettings)
        self._model = model or model_of(
            settings, guide.name.removeprefix("subagent-"), ModelCallRecorder(context, guide.name), is_chat=True
        )
        self._guide = guide
        self._users = UserDirectory(context.bus, open_preferences(settings.habits).zone_of)
        self._clock = context.clock

    @abstractmethod
    def instruments(self, work: Delegated) -> Sequence[BoundTool]:
        """The tools for one task."""

    def guide_in(self, language: Language) -> Guide:
        """The guide for a task in this language; override it where there are several."""
        return self._guide

    async def stop(self) -> None:
        await super().stop()
        await self._model.aclose()

    async def execute(self, work: Delegated) -> str:
        """The answer to a task; its prompts say the moment of the task, so that one that comes again asks the same."""
        said = [*model_messages(work.history), ModelMessage(role="user", content=work.task)]
        toolbox = Toolbox(self.instruments(work))
        present = Present.of(await self._users.of(work.chat_id), sent_at(self._clock))
        loop = ToolLoop(self.guide_in(language_of(work.task)), PresentModel(self._model, present), self.most_rounds)
        return sanitise_text(await loop.answer(said, _materials(work), toolbox, _Observer(work)))


class _Observer:
    """Tells whoever watches the task."""

    def __init__(self, work: Delegated) -> None:
        self._work = work

    @property
    def has_room(self) -> bool:
        return self._work.has_room

    async def called(self, text: str, calls: Sequence[ToolCall]) -> None:
        await self._work.report_calls(history_calls(calls), sanitise_text(text))

    async def working(self, call: ToolCall) -> None:
        await self._work.working(call.name, f"{call.name} {call.arguments[:_STATUS_CHARS]}")

    async def answered(self, call: ToolCall, content: str, *, is_error: bool) -> str:
        (kept,) = history_calls([call])
        return await self._work.report_result(kept, sanitise_text(content), is_error=is_error)


def _materials(work: Delegated) -> list[Material]:
    """The talk out of which the task comes, as something to read."""
    lines = [f"{each.role}: {each.content}" for each in work.context]
    return [Material("talk", TALK, "\n".join(lines))] if lines else []
