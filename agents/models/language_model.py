"""The interface of language models, a wrapper that meters their use, and answers that fit a schema."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.models.errors import AnswerCutOff, ModelFailure, NeedsLanguageModel, SchemaMismatch
from agents.models.json_answers import parse_answer
from language.words import estimated_tokens
from mindbus.logs import logger

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "tool_calls", "repetition"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ToolCall(_Value):
    """The model wants a tool run; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


def tool_call(name: str, call_id: str = "", **arguments: object) -> ToolCall:
    """A call with these arguments."""
    return ToolCall(id=call_id or f"call_{name}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))


class ModelMessage(_Value):
    role: Role
    content: str
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Tool(_Value):
    name: str
    description: str
    parameters: dict[str, Any]

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of its declaration."""
        return estimated_tokens(f"{self.name} {self.description} {json.dumps(self.parameters, ensure_ascii=False)}")

    @classmethod
    def of(cls, name: str, description: str, arguments: type[BaseModel]) -> "Tool":
        """A tool with these arguments: their schema without titles and the description, which a prompt pays for."""
        schema = arguments.model_json_schema()
        schema.pop("description", None)
        return cls(name=name, description=description, parameters=_without_titles(schema))


def _without_titles(schema: Any) -> Any:
    """A JSON schema without the titles that pydantic makes of names; an argument may be called so."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_titles(each) for key, each in schema.items() if key != "title" or not isinstance(each, str)}


class ModelParams(_Value):
    """Parameters of a call; those that are not set are left to the endpoint.

    `tool_choice` is the name of the tool that has to be called, or `required` for any.
    """

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    tool_choice: str | None = None

    def choosing(self, tool: str | None) -> "ModelParams":
        """The parameters with this choice of a tool."""
        return self.model_copy(update={"tool_choice": tool}) if tool else self


class TokenUsage(_Value):
    """Tokens of an answer; zero where the endpoint does not report them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class Completion(_Value):
    """A whole answer: one that was cut off, refused or never came is a `ModelFailure` instead.

    One that went round in circles was ended, with "repetition": its text is what came before.
    `retries` is how often its endpoint was asked in vain.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: TokenUsage = TokenUsage()
    model_name: str
    took: timedelta
    retries: int = 0


class Chunk(_Value):
    """A piece of an answer as it comes; the last one carries the whole answer."""

    text: str = ""
    completion: Completion | None = None


DEFAULTS = ModelParams()


class LanguageModel(Protocol):
    @property
    def name(self) -> str: ...

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        """Answer in one piece; with a schema the text is JSON meant to fit it (`complete_as` makes sure)."""
        ...

    def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        """Answer piece by piece; never retried once the first piece is out, since it may have been shown.

        At the token limit the pieces come first, then AnswerCutOff is raised.
        """
        ...

    async def aclose(self) -> None: ...


_meter: "ContextVar[TokenMeter | None]" = ContextVar("meter of the work at hand", default=None)


class TokenMeter:
    """Tokens that answers of metered models have cost within a block, in this task and those it starts.

    `model_name` is that of the last one, empty where none was asked.
    """

    def __init__(self) -> None:
        self.usage = TokenUsage()
        self.model_name = ""

    def __enter__(self) -> Self:
        self._before = _meter.set(self)
        return self

    def __exit__(self, *_exc: object) -> None:
        _meter.reset(self._before)


class MeteredModel:
    """A language model that adds up what its answers cost, those that are cut off included."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.calls = 0
        self.usage = TokenUsage()

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        with self._counted_if_cut_off():
            return self._count(await self._model.complete(messages, tools=tools, schema=schema, params=params))

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        with self._counted_if_cut_off():
            async for chunk in self._model.stream(messages, tools=tools, params=params):
                if chunk.completion:
                    self._count(chunk.completion)
                yield chunk

    async def aclose(self) -> None:
        await self._model.aclose()

    @contextmanager
    def _counted_if_cut_off(self) -> Iterator[None]:
        try:
            yield
        except AnswerCutOff as cut:
            usage = TokenUsage(prompt_tokens=cut.prompt_tokens, completion_tokens=cut.completion_tokens)
            self._add(usage, self.name)
            raise

    def _count(self, completion: Completion) -> Completion:
        self._add(completion.usage, completion.model_name)
        return completion

    def _add(self, usage: TokenUsage, model_name: str) -> None:
        self.calls += 1
        self.usage += usage
        if (meter := _meter.get()) is not None:
            meter.usage += usage
            meter.model_name = model_name


S = TypeVar("S", bound=BaseModel)


async def complete_as(
    model: LanguageModel, messages: Sequence[ModelMessage], schema: type[S], params: ModelParams = DEFAULTS
) -> S:
    """Ask for an answer that fits; on a misfit show the model its error, once."""
    first = await model.complete(messages, schema=schema, params=params)
    try:
        return parse_answer(first.text, schema)
    except ValidationError as error:
        repair = (*messages, ModelMessage(role="assistant", content=first.text), _correction(error))
    second = await model.complete(repair, schema=schema, params=params)
    try:
        return parse_answer(second.text, schema)
    except ValidationError as error:
        raise SchemaMismatch(f"{schema.__name__}: {_complaints(error)}", second.text) from error


async def try_complete_as(
    model: LanguageModel, messages: Sequence[ModelMessage], schema: type[S], params: ModelParams = DEFAULTS
) -> S | None:
    """An answer that fits, or none: for those who can do without, whatever ails the model."""
    try:
        return await complete_as(model, messages, schema, params)
    except NeedsLanguageModel:
        return None
    except ModelFailure as failure:
        logger().warning("model did not help", model=model.name, schema=schema.__name__, error=str(failure))
        return None


def _correction(error: ValidationError) -> ModelMessage:
    return ModelMessage(
        role="user",
        content=f"That answer does not fit the schema: {_complaints(error)}. "
        "Answer again with the corrected JSON object alone.",
    )


def _complaints(error: ValidationError) -> str:
    # Without the input: the error is logged, the answer may be private.
    return "; ".join(
        f"{'.'.join(map(str, complaint['loc'])) or 'the answer'}: {complaint['msg']}"
        for complaint in error.errors(include_input=False, include_url=False)[:10]
    )
