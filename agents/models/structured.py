"""Answers that fit a schema."""

import re
from collections.abc import Sequence
from typing import TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from agents.models.errors import ModelFailure, NeedsLanguageModel, SchemaMismatch
from agents.models.language_model import DEFAULTS, LanguageModel, ModelMessage, ModelParams

S = TypeVar("S", bound=BaseModel)

log = structlog.get_logger()

_FENCE = re.compile(r"\A```[a-z]*\n(.*)\n```\Z", re.DOTALL)


async def complete_as(
    model: LanguageModel, messages: Sequence[ModelMessage], schema: type[S], params: ModelParams = DEFAULTS
) -> S:
    """Ask for an answer that fits; on a misfit show the model its error, once."""
    first = await model.complete(messages, schema=schema, params=params)
    try:
        return _read(first.text, schema)
    except ValidationError as error:
        repair = (*messages, ModelMessage(role="assistant", content=first.text), _correction(error))
    second = await model.complete(repair, schema=schema, params=params)
    try:
        return _read(second.text, schema)
    except ValidationError as error:
        raise SchemaMismatch(f"{schema.__name__}: {_complaints(error)}") from error


async def try_complete_as(
    model: LanguageModel, messages: Sequence[ModelMessage], schema: type[S], params: ModelParams = DEFAULTS
) -> S | None:
    """An answer that fits, or none: for those who can do without, whatever ails the model."""
    try:
        return await complete_as(model, messages, schema, params)
    except NeedsLanguageModel:
        return None
    except ModelFailure as failure:
        log.warning("model did not help", model=model.name, schema=schema.__name__, error=str(failure))
        return None


def _read(text: str, schema: type[S]) -> S:
    # Small models wrap JSON in a code fence even when they are told not to.
    bare = text.strip()
    fenced = _FENCE.match(bare)
    return schema.model_validate_json(fenced[1] if fenced else bare)


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
