"""Lenient reading of JSON out of a model's answer: in a fence, after thoughts, between chatter, with a key too many."""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json

from agents.models.answer_text import without_thoughts

S = TypeVar("S", bound=BaseModel)
_DECODER = json.JSONDecoder()
_MOST_OBJECTS = 20


def parse_answer(text: str, schema: type[S]) -> S:
    """The first object in the answer that fits; unknown keys are dropped, lists cut to their length.

    Raises ValidationError, which is about the first object, or the text where it has none.
    """
    misfit: ValidationError | None = None
    for value in _objects(without_thoughts(text)):
        try:
            return _fitted(value, schema)
        except ValidationError as error:
            misfit = misfit or error
    if misfit is not None:
        raise misfit
    return schema.model_validate_json(text.strip())


def parse_cut_answer(text: str, schema: type[S]) -> S | None:
    """Object in an answer that stops in the middle, as far as it goes; None where that does not fit."""
    start = (said := without_thoughts(text)).find("{")
    if start < 0:
        return None
    try:
        return _fitted(from_json(said[start:], allow_partial=True), schema)
    except ValueError:
        return None


def _objects(text: str) -> Iterator[Any]:
    """Every outermost JSON object in a text."""
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)


def _fitted(value: Any, schema: type[S]) -> S:
    try:
        return schema.model_validate_json(json.dumps(value))
    except ValidationError as error:
        mended = [_mend(value, wrong) for wrong in reversed(error.errors(include_url=False))]
        if not all(mended):
            raise
    return schema.model_validate_json(json.dumps(value))


def _mend(value: Any, wrong: ErrorDetails) -> bool:
    """Drop an unknown key, or what is too much of a list, in place; False where that is not what is wrong."""
    *path, last = wrong["loc"] or ("",)
    try:
        for key in path:
            value = value[key]
        match wrong["type"]:
            case "extra_forbidden":
                del value[last]
            case "too_long" if isinstance(value[last], list):
                del value[last][wrong["ctx"]["max_length"] :]
            case _:
                return False
    except (KeyError, IndexError, TypeError):
        return False
    return True
