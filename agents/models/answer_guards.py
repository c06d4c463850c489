"""Answers of small models held back until it is known that they are answers, and speak of what they should."""

from collections.abc import AsyncIterator, Collection, Sequence

from agents.models.conversation import is_written_call
from agents.models.language_model import Chunk
from language.words import terms


class WrittenCall(Exception):  # an answer, not a failure of the model
    """A call that the model has written as its answer."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Ungrounded(Exception):  # an answer, not a failure of the model
    """An answer that has nothing of what it should tell."""


# An answer about what sub-agents have said is shown at once from so many characters on; one of a word confirms.
_SHORT_CHARS, _STATED_TERMS = 300, 2
_CALL_WITHIN_CHARS = 200


async def grounded(chunks: AsyncIterator[Chunk], results: Sequence[str]) -> AsyncIterator[Chunk]:
    """The chunks of an answer, held back while it is short.

    Raises Ungrounded for a short one that states something without a word of the results.
    """
    held: list[Chunk] = []
    text, is_held, calls = "", bool(results), False
    async for chunk in chunks:
        text += chunk.text
        calls = calls or bool(chunk.completion and chunk.completion.tool_calls)
        held.append(chunk)
        is_held = is_held and len(text) < _SHORT_CHARS
        if not is_held:
            for each in held:
                yield each
            held.clear()
    told = set(terms(text))
    if held and not calls and len(told) >= _STATED_TERMS and not told & set(terms(" ".join(results))):
        raise Ungrounded
    for each in held:
        yield each


def _may_be_call(start: str) -> bool:
    """Whether an answer that begins so may be a call: an object, bare or fenced as JSON, whose keys are soon those."""
    inner = start.lstrip().lstrip("`")
    is_object = "json".startswith(inner) or inner.removeprefix("json").lstrip()[:1] in ("", "{")
    return is_object and (len(start) < _CALL_WITHIN_CHARS or is_written_call(start))


async def spoken(chunks: AsyncIterator[Chunk]) -> AsyncIterator[Chunk]:
    """The chunks of an answer, held back while it may be a call written as text. Raises WrittenCall if it is one."""
    held: list[Chunk] = []
    is_held, start = True, ""
    async for chunk in chunks:
        start += chunk.text
        is_held = is_held and _may_be_call(start)
        held.append(chunk)
        if not is_held:
            for each in held:
                yield each
            held.clear()
    text = held[-1].completion.text if held and held[-1].completion else ""
    if is_written_call(text):
        raise WrittenCall(text)
    for each in held:
        yield each


async def without_echo(chunks: AsyncIterator[Chunk], lines: Collection[str]) -> AsyncIterator[Chunk]:
    """The chunks of an answer without the lines of its prompt that it begins with, unless it says nothing else."""
    start, is_held = "", bool(lines)
    async for chunk in chunks:
        if not is_held:
            yield chunk
            continue
        start = _without_first(start + chunk.text, lines)
        is_held = not chunk.completion and any(line.startswith(start) for line in lines)
        if not is_held:
            yield chunk.model_copy(update={"text": start})


def _without_first(text: str, lines: Collection[str]) -> str:
    while True:
        first, end, rest = text.partition("\n")
        if not end or first.strip() not in {"", *lines}:
            return text
        text = rest
