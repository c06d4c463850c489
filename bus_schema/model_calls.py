"""Calls of language models: what was asked and answered, for who may look at it, and what it has cost."""

from datetime import date
from typing import Literal

from pydantic import AwareDatetime, Field

from bus_schema.artifacts import ArtifactId
from bus_schema.identities import UserId
from bus_schema.messages import Command, Event, Nothing, Query, Value

MODEL_CALL = "model_call"
"""Type of the artifacts that hold calls, as JSON of ModelCall."""

MAX_CALL_CHARS = 2_000_000


class SaidToModel(Value):
    """A message of a prompt, or an answer; `tool_calls` are names with the arguments as the model wrote them."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str | None = None
    tool_calls: tuple[tuple[str, str], ...] = ()


class CallUsage(Value):
    """Tokens, time and price of one call; no price if the table in `models.yaml` does not list the model."""

    model_name: str = Field(max_length=200)
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    took_ms: int = Field(default=0, ge=0)
    retries: int = Field(default=0, ge=0)
    price: float | None = Field(default=None, ge=0)

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.prompt_tokens + self.completion_tokens


class ModelCall(CallUsage):
    """One call: the prompt, the tools that were offered, the answer, or what went wrong."""

    called_at: AwareDatetime
    caller: str
    prompt: tuple[SaidToModel, ...]
    tools: tuple[str, ...] = ()
    schema_name: str | None = None
    answer: SaidToModel | None = None
    failure: str = ""


class RecordModelCall(Command[Nothing], domain="storage", action="record_model_call"):
    """Count what a call cost and, if it is given, keep it as a private artifact of the person it was made for.

    Its trace is the message's; its step is the run's, or the id of the assistant's message.
    """

    call_id: ArtifactId
    user_id: UserId | None = None
    cost: CallUsage
    call: ModelCall | None = None
    kept_days: int = Field(default=30, ge=1)


class TokensToday(Value):
    """Tokens that all model calls have cost since midnight (UTC)."""

    day: date
    tokens: int


class GetTokensToday(Query[TokensToday], domain="storage", action="get_tokens_today"):
    """Add up what models have cost today, no matter who called them, for the quota of a fleet."""


class ModelCalled(Event, topic="model", name="called"):
    """A worker called a model, for somebody or for nobody in particular; storage has verified for whom."""

    call_id: ArtifactId
    user_id: UserId | None = None
    caller: str
    cost: CallUsage
    is_kept: bool
