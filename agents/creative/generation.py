"""Generation of one text of a role: streamed, so that what has come is kept whatever ends the call."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agents.models.answer_text import joined, without_fence, without_material_tags, without_thoughts
from agents.models.errors import AnswerCutOff, ModelInterrupted, ModelUnavailable
from agents.models.language_model import LanguageModel, ModelMessage, ModelParams
from bus_schema.runs import MisbehaviourKind

_CONTINUE = (
    "Your answer was cut off. Continue it exactly where it stops, in the same language. "
    "Repeat nothing, comment on nothing."
)


@dataclass(frozen=True)
class GeneratedText:
    """The text so far, and why it is not whole, if it is not; one that went round in circles is whole without them."""

    raw: str
    broken_by: MisbehaviourKind | None = None
    is_whole: bool = True

    @property
    def text(self) -> str:
        """The text alone, without thoughts, fence and the tags of the prompt's blocks."""
        return without_fence(without_material_tags(without_thoughts(self.raw)))


async def generate_text(
    model: LanguageModel,
    messages: Sequence[ModelMessage],
    params: ModelParams,
    so_far: str = "",
    until: float | None = None,
) -> GeneratedText:
    """A text, or the continuation of what there is so far, until the event loop's time `until`.

    Raises ModelFailure and TimeoutError where not a word has come.
    """
    if until is not None and asyncio.get_running_loop().time() >= until:
        raise TimeoutError
    prompt = [*messages]
    if so_far:
        prompt += [ModelMessage(role="assistant", content=so_far), ModelMessage(role="user", content=_CONTINUE)]
    said: list[str] = []
    goes_round = False
    try:
        async with asyncio.timeout_at(until):
            async for chunk in model.stream(prompt, params=params):
                said.append(chunk.text)
                if chunk.completion:
                    said, goes_round = [chunk.completion.text], chunk.completion.finish_reason == "repetition"
    except ModelInterrupted:
        return GeneratedText(joined(so_far, "".join(said)), is_whole=False)
    except AnswerCutOff as error:
        return GeneratedText(joined(so_far, "".join(said) or error.text), MisbehaviourKind.CUT_OFF, is_whole=False)
    except (ModelUnavailable, TimeoutError) as error:
        if not any(said):
            raise
        broken_by = None if isinstance(error, TimeoutError) else MisbehaviourKind.STALLED
        return GeneratedText(joined(so_far, "".join(said)), broken_by, is_whole=False)
    return GeneratedText(joined(so_far, "".join(said)), MisbehaviourKind.ENDLESS if goes_round else None)
