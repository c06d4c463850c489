"""Reading of a fragment by a language model: one call for all agents of a process that read with the same model."""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, create_model

from agents.configuration.prompts import Guide
from agents.models.endpoint import EndpointModel
from agents.models.language_model import LanguageModel, ModelMessage, ModelParams, try_complete_as
from agents.models.prompt import Material, PresentModel, build_prompt
from agents.present import Present
from bus_schema.dialogue import DialogueMessage
from mindbus.logs import logger

S = TypeVar("S", bound=BaseModel)
# Every agent receives every fragment, though one may be busy with another fragment still.
_GATHER_S = 10.0
# Chats may interrupt a reading again and again; what the rules have read waits for it.
_READ_WITHIN_S = 300.0
_TOGETHER = (
    "You do several jobs with the same messages, which one person has written to an assistant. Answer with one JSON "
    "object, which has a key for each job: {keys}."
)


@dataclass(frozen=True)
class ReadingPart(Generic[S]):
    """One agent's questions about a fragment, with what it knows already; `key` is that of its answer."""

    key: str
    guide: Guide
    request: str
    schema: type[S]
    known: Sequence[Material] = ()


@dataclass(eq=False)
class _Gathering:
    """The parts of one reading, until it begins; `answers` are those of the model by part."""

    messages: Sequence[DialogueMessage]
    model: LanguageModel
    parts: dict[str, ReadingPart[Any]] = field(default_factory=dict)
    is_whole: asyncio.Event = field(default_factory=asyncio.Event)
    answers: "asyncio.Task[Mapping[str, BaseModel]] | None" = None


class JointReadings:
    """The readings of agents that share a model; `members` are the keys of their parts."""

    def __init__(self) -> None:
        self.members: set[str] = set()
        self._gathering: dict[tuple[str, ...], _Gathering] = {}

    async def read(self, part: ReadingPart[S], messages: Sequence[DialogueMessage], model: LanguageModel) -> S | None:
        """The model's answer to a part; it is asked when all members have come, or after a while."""
        about = tuple(message.message_id for message in messages)
        gathering = self._gathering.get(about)
        if gathering is None or part.key in gathering.parts:
            gathering = self._gathering[about] = _Gathering(messages, model)
            gathering.answers = asyncio.create_task(self._answers(about, gathering))
        gathering.parts[part.key] = part
        if self.members <= gathering.parts.keys():
            gathering.is_whole.set()
        assert gathering.answers is not None
        answers = await asyncio.shield(gathering.answers)
        return cast("S | None", answers.get(part.key))

    async def _answers(self, about: tuple[str, ...], gathering: _Gathering) -> Mapping[str, BaseModel]:
        try:
            async with asyncio.timeout(_GATHER_S):
                await gathering.is_whole.wait()
        except TimeoutError:
            pass
        finally:
            if self._gathering.get(about) is gathering:
                del self._gathering[about]
        parts = sorted(gathering.parts.values(), key=lambda part: part.key)
        try:
            async with asyncio.timeout(_READ_WITHIN_S):
                if len(parts) == 1:
                    return await _read_alone(parts[0], gathering)
                return await _read_together(parts, gathering)
        except TimeoutError:
            logger().warning(
                "fragment not read by the model", parts=[part.key for part in parts], within_s=_READ_WITHIN_S
            )
            return {}


async def _read_alone(part: ReadingPart[Any], gathering: _Gathering) -> Mapping[str, BaseModel]:
    asked = _prompt(part.guide.system, part.request, [part], gathering.messages)
    answer = await try_complete_as(gathering.model, asked, part.schema, part.guide.model)
    return {part.key: answer} if answer else {}


async def _read_together(parts: Sequence[ReadingPart[Any]], gathering: _Gathering) -> Mapping[str, BaseModel]:
    keys = ", ".join(part.key for part in parts)
    system = "\n\n".join((_TOGETHER.format(keys=keys), *(f"# {part.key}\n{part.guide.system}" for part in parts)))
    request = "\n".join(f"{part.key}: {part.request}" for part in parts)
    asked = _prompt(system, request, parts, gathering.messages)
    schema = _joint_schema(tuple((part.key, part.schema) for part in parts))
    answer = await try_complete_as(gathering.model, asked, schema, _joint_params(parts))
    return {part.key: getattr(answer, part.key) for part in parts} if answer else {}


class FragmentReader:
    """Reads fragments for one agent, by itself until it has joined the others of the process."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._readings = JointReadings()

    def join(self, key: str) -> None:
        """Read together with the other agents of this process whose model is the same."""
        if isinstance(self._model, EndpointModel):
            readings = _shared.setdefault(asyncio.get_running_loop(), {})
            self._readings = readings.setdefault(self._model.identity, self._readings)
        self._readings.members.add(key)

    def leave(self, key: str) -> None:
        """Read together no more."""
        self._readings.members.discard(key)

    async def read(
        self, part: ReadingPart[S], messages: Sequence[DialogueMessage], present: Present | None = None
    ) -> S | None:
        """The model's answer to a part; None where it is of no help."""
        model = PresentModel(self._model, present) if present else self._model
        return await self._readings.read(part, messages, model)


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, JointReadings]] = WeakKeyDictionary()


def _prompt(
    system: str, request: str, parts: Sequence[ReadingPart[Any]], messages: Sequence[DialogueMessage]
) -> Sequence[ModelMessage]:
    known = [material for part in parts for material in part.known]
    said = [Material(message.message_id, "message", message.content or "") for message in messages]
    return build_prompt("reading", "write", system, request, [*known, *said])


@cache
def _joint_schema(parts: tuple[tuple[str, type[BaseModel]], ...]) -> type[BaseModel]:
    fields: dict[str, Any] = {key: (schema, ...) for key, schema in parts}
    return create_model("FragmentReading", __config__=ConfigDict(extra="forbid"), **fields)


def _joint_params(parts: Sequence[ReadingPart[Any]]) -> ModelParams:
    limits = [part.guide.model.max_tokens for part in parts]
    most = None if None in limits else sum(filter(None, limits))
    return parts[0].guide.model.model_copy(update={"max_tokens": most})
