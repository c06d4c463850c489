"""Calls of models: records of them, sent to storage, and the count of what they use for each person."""

import math
import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import Connection

from agents.configuration.model_roles import price_of
from agents.models.errors import TokensSpent
from agents.models.language_model import ModelMessage, ToolCall
from agents.models.offline.model import NAME as OFFLINE_MODEL
from agents.models.recorded import FinishedCall, subject_of_calls
from bus_schema.identities import user_of
from bus_schema.ids import mint, uuid7
from bus_schema.model_calls import CallUsage, GetTokensToday, ModelCall, ModelCalled, RecordModelCall, SaidToModel
from config.settings import FleetSettings
from mindbus.bus.context import MessageContext, current_message
from mindbus.bus.handlers import on_event
from mindbus.bus.telemetry import Metric, series
from mindbus.bus.worker import WorkerContext
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.redaction import MASK, without_secrets
from mindbus.spans import past_span
from mindbus.sql.database import Database
from storage_service.quotas import EVERYBODY, add_tokens

MODEL_TOKENS = Metric("Counter", "mindbus_model_tokens_total", "Tokens of models", ("role", "model", "direction"))
MODEL_CALLS = Metric("Counter", "mindbus_model_calls_total", "Calls of models", ("role", "model", "outcome"))
MODEL_COST = Metric("Counter", "mindbus_model_cost_total", "Price of calls, in models.yaml's money", ("role", "model"))
MODEL_RETRIES = Metric("Counter", "mindbus_model_retries_total", "Requests sent again", ("role", "model"))
MODEL_SECONDS = Metric("Histogram", "mindbus_model_seconds", "Time of a call", ("role", "model"))
# Fields of messages that name the person whose words they are about.
_PEOPLE = ("user_id", "chat_id", "to_user")


# How long the sum that storage has told is believed.
_BELIEVED_S = 5.0


class ModelCallRecorder:
    """Counts the calls of a worker's model, has storage keep them as the settings say, refuses those beyond a quota."""

    def __init__(self, context: WorkerContext, caller: str) -> None:
        settings = context.settings_as(FleetSettings)
        self._context, self._caller = context, caller
        self._kept_days, self._quota = settings.model_calls_days, settings.quota_tokens_per_day
        self._redacted = re.compile(settings.model_calls_redact) if settings.model_calls_redact else None
        self._spent, self._asked_at = 0, -math.inf

    async def admit(self) -> None:
        """Return unless the tokens of today are spent. Raises TokensSpent.

        Calls under way when the quota is reached are finished. While storage does not answer, none is refused.
        """
        if not self._quota:
            return
        if time.monotonic() - self._asked_at > _BELIEVED_S:
            try:
                self._spent = (await self._context.bus.request(GetTokensToday(), timeout_s=_BELIEVED_S)).tokens
            except (ReplyError, BusUnavailable) as error:
                logger().warning("tokens of today are unknown", reason=str(error))
            self._asked_at = time.monotonic()
        if self._spent >= self._quota:
            raise TokensSpent(f"{self._spent} of {self._quota}")

    async def record(self, done: FinishedCall) -> None:
        """Count a call, and send storage the record of it."""
        caller, cost = self._caller, _cost_of(done)
        self._spent += cost.tokens
        for direction, tokens in (("prompt", cost.prompt_tokens), ("completion", cost.completion_tokens)):
            series(MODEL_TOKENS, caller, cost.model_name, direction).inc(tokens)
        outcome = "stopped" if done.is_stopped else "failed" if done.failure else "answered"
        series(MODEL_CALLS, caller, cost.model_name, outcome).inc()
        series(MODEL_COST, caller, cost.model_name).inc(cost.price or 0)
        series(MODEL_RETRIES, caller, cost.model_name).inc(cost.retries)
        series(MODEL_SECONDS, caller, cost.model_name).observe(done.took_s)
        _trace(done, cost, caller)
        call = _call_of(done, cost, caller, self._context.clock(), self._clean) if self._kept_days else None
        record = RecordModelCall(
            call_id=mint("art"),
            user_id=_person_of(current_message()),
            cost=cost,
            call=call,
            kept_days=self._kept_days or 1,
        )
        try:
            await self._context.bus.send(record, step=subject_of_calls(), message_id=str(uuid7()))
        except BusUnavailable as error:
            logger().warning("model call not recorded", role=caller, reason=str(error))

    def _clean(self, text: str) -> str:
        text = without_secrets(text)
        return self._redacted.sub(MASK, text) if self._redacted else text


class TokenCount:
    """Counts what models use on a day, for each person and in all; storage has verified for whom."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    @on_event
    async def count(self, event: ModelCalled) -> None:
        if not event.cost.tokens:
            return
        day, users = self._clock().date().isoformat(), () if event.user_id is None else (f"user.{event.user_id}",)

        def add(connection: Connection) -> None:
            for identity in (EVERYBODY, *users):
                add_tokens(connection, identity, day, event.cost.tokens)

        await self._database.run(add)


def _trace(done: FinishedCall, cost: CallUsage, caller: str) -> None:
    """A span by OpenTelemetry's conventions for generative AI; no word of the prompt or the answer is in it."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mindbus" if done.model_name == OFFLINE_MODEL else "openai",
        "gen_ai.agent.name": caller,
        "gen_ai.request.model": done.model_name,
        "gen_ai.response.model": cost.model_name,
        "gen_ai.usage.input_tokens": cost.prompt_tokens,
        "gen_ai.usage.output_tokens": cost.completion_tokens,
        "mindbus.price": cost.price or 0.0,
    }
    failure = "ModelFailure" if done.failure and not done.is_stopped else ""
    past_span(f"chat {done.model_name}", "CLIENT", done.took_s, failure, attributes)


def _cost_of(done: FinishedCall) -> CallUsage:
    model = done.completion.model_name if done.completion else done.model_name
    prompt, completion = done.usage.prompt_tokens, done.usage.completion_tokens
    return CallUsage(
        model_name=model[:200],
        prompt_tokens=prompt,
        completion_tokens=completion,
        took_ms=round(1000 * done.took_s),
        retries=done.completion.retries if done.completion else 0,
        price=price_of(done.model_name, prompt, completion),
    )


def _call_of(done: FinishedCall, cost: CallUsage, caller: str, now: datetime, clean: Callable[[str], str]) -> ModelCall:
    calls = done.completion.tool_calls if done.completion else ()
    answer = SaidToModel(role="assistant", content=clean(done.text), tool_calls=_calls(calls, clean))
    return ModelCall(
        **dict(cost),
        called_at=now,
        caller=caller,
        prompt=tuple(_said(message, clean) for message in done.prompt),
        tools=tuple(tool.name for tool in done.tools),
        schema_name=done.schema.__name__ if done.schema else None,
        answer=answer if done.completion or done.text else None,
        failure=clean(done.failure),
    )


def _said(message: ModelMessage, clean: Callable[[str], str]) -> SaidToModel:
    return SaidToModel(
        role=message.role,
        content=clean(message.content),
        name=message.name,
        tool_calls=_calls(message.tool_calls, clean),
    )


def _calls(calls: Iterable[ToolCall], clean: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    return tuple((call.name, clean(call.arguments)) for call in calls)


def _person_of(at_hand: MessageContext | None) -> str | None:
    """The person for whom the message at hand is: who has started its run, whom it is about, who asks."""
    if at_hand is None:
        return None
    if started_by := getattr(at_hand.message, "started_by", None):
        return user_of(started_by)
    named = (getattr(at_hand.message, field, None) for field in _PEOPLE)
    return next((name for name in named if name), None) or user_of(at_hand.owner)
