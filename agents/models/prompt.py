"""Layout of a prompt, and a model that is told the present with every prompt.

The system message opens with `Task: <artifact type>` (`research_report idea draft critique edited final`), then
`Step: write`, `Step: self-critique` or `Step: revise`; whatever else it says is the role's own instructions. The user
message holds free instructions followed by the material, each piece in a labelled block:

    <material id="art_1" type="brief">
    ...
    </material>

In the steps after `write` the writer's own attempt is the block with the id `attempt`, typed like the task, and
the remarks to act on are a block of the type `remarks`, one list item each.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from agents.models.language_model import DEFAULTS, Chunk, Completion, LanguageModel, ModelMessage, ModelParams, Tool
from agents.present import Present, without_present
from bus_schema.glm import Explanation, FoundKem
from language.words import MESSAGE_TOKENS, Language, estimated_tokens, first_words, language_of, words

Step = Literal["write", "self-critique", "revise"]
ATTEMPT = "attempt"
REMARKS = "remarks"

_TASK = re.compile(r"\ATask:\s*([a-z][a-z0-9_]*)[ \t]*(?:\r?\nStep:\s*([a-z-]+))?", re.IGNORECASE)
_BLOCK = re.compile(
    r'^<material id="([^"\n]*)" type="([^"\n]*)">\n(.*?)\n?^</material>[ \t]*$', re.DOTALL | re.MULTILINE
)
MEMORY = "memory"
# Memory that may not bear on the matter.
UNCERTAIN = "uncertain memory"
# A file that the user has sent; the id is its name.
ATTACHED = "attached file"
# A statement of the user's from the conversation itself that may answer the question.
EARLIER = "said earlier"
_LONGEST_WORDS = 120


@dataclass(frozen=True)
class Material:
    id: str
    type: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """A parsed prompt: task, step, material, instructions."""

    task: str
    step: Step
    materials: tuple[Material, ...]
    instructions: str

    @property
    def attempt(self) -> Material | None:
        return next((piece for piece in self.materials if piece.id == ATTEMPT), None)


def build_prompt(
    task: str, step: Step, role: str, instructions: str, materials: Iterable[Material]
) -> tuple[ModelMessage, ModelMessage]:
    """The two messages that ask for this step of the task."""
    return (
        ModelMessage(role="system", content=f"Task: {task}\nStep: {step}\n\n{role}"),
        ModelMessage(role="user", content="\n\n".join((instructions, *blocks(materials)))),
    )


def blocks(materials: Iterable[Material]) -> tuple[str, ...]:
    """Material between its labels, one block each."""
    return tuple(
        f'<material id="{piece.id}" type="{piece.type}">\n{_guarded(piece.text)}\n</material>' for piece in materials
    )


def remarks(lines: Iterable[str]) -> Material:
    """Remarks on the attempt as material."""
    return Material(REMARKS, REMARKS, "\n".join(f"- {' '.join(line.split())}" for line in lines))


def read(messages: Sequence[ModelMessage]) -> Prompt:
    """The task in these messages; one without a task line has an empty task."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    user = "\n\n".join(message.content for message in messages if message.role == "user")
    task = _TASK.match(system)
    return Prompt(
        task=task[1].lower() if task else "",
        step=_step(task[2] if task else None),
        materials=tuple(Material(id, type, _unguarded(text)) for id, type, text in _BLOCK.findall(user)),
        instructions=without_present(_BLOCK.sub("", user)).strip(),
    )


def _step(said: str | None) -> Step:
    return next((step for step in get_args(Step) if step == (said or "").lower()), "write")


def _guarded(text: str) -> str:
    # Material must not be able to end its own block and pass for instructions.
    return text.replace("</material>", "<\\/material>")


def _unguarded(text: str) -> str:
    return text.replace("<\\/material>", "</material>")


class Verdict(BaseModel):
    """The answer to a self-critique: satisfied, or what to change."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    satisfied: bool
    remarks: list[str] = Field(max_length=8)


# Of the words of a question that weigh anything, such a share; or so near in meaning, whatever the words.
_WORDS, _MEANING = 0.15, 0.32
# The same of what may bear on it.
_SOME_WORDS, _SOME_MEANING = 0.05, 0.25
_MOST_UNCERTAIN = 3


def memory_materials(found: Iterable[FoundKem], room_words: int) -> tuple[Material, ...]:
    """The texts that bear on the question, as far as there is room, under the ids of their units."""
    return _materials((each for each in found if _bears_on_it(each.explain)), MEMORY, room_words)


def uncertain_materials(found: Iterable[FoundKem], room_words: int) -> tuple[Material, ...]:
    """The best few of the texts that may bear on the question, marked as uncertain."""
    uncertain = [each for each in found if not _bears_on_it(each.explain) and _may_bear_on_it(each.explain)]
    return _materials(uncertain[:_MOST_UNCERTAIN], UNCERTAIN, room_words)


def _materials(found: Iterable[FoundKem], kind: str, room_words: int) -> tuple[Material, ...]:
    materials = []
    for each in found:
        if text := first_words((each.kem.content or "").strip(), _LONGEST_WORDS):
            room_words -= len(words(text))
            if room_words < 0:
                break
            materials.append(Material(each.kem.id, kind, text))
    return tuple(materials)


def _bears_on_it(why: Explanation | None) -> bool:
    """Check the scores of a unit: something always comes nearest, which does not make it relevant."""
    return why is not None and ((why.lexical or 0) >= _WORDS or (why.dense or 0) >= _MEANING)


def _may_bear_on_it(why: Explanation | None) -> bool:
    return why is not None and ((why.lexical or 0) >= _SOME_WORDS or (why.dense or 0) >= _SOME_MEANING)


# Of the context, since tokens are estimated.
_MARGIN = 0.1
# Of the context at most, whatever an answer may be long; of the rest in any case.
_LARGEST_ANSWER, _LEAST = 0.25, 100
_USUAL_ANSWER = 1000
# Of what remains; more memory than so many tokens only distracts.
_MEMORY_SHARE, _LARGEST_MEMORY = 0.45, 4000


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """Estimated tokens for the window of a conversation, the last message included, and for memory."""

    window: int
    memory: int

    @classmethod
    def of(
        cls, context_tokens: int, system: str, tools: Iterable[Tool] = (), answer_tokens: int | None = None
    ) -> "PromptBudget":
        """Budget of a context with this system message and these tools; each share has at least 100 tokens."""
        answer = min(answer_tokens or _USUAL_ANSWER, int(_LARGEST_ANSWER * context_tokens))
        fixed = _fixed_tokens(system) + sum(tool.tokens for tool in tools) + MESSAGE_TOKENS
        rest = int((1 - _MARGIN) * context_tokens) - answer - fixed
        memory = max(_LEAST, min(int(_MEMORY_SHARE * rest), _LARGEST_MEMORY))
        return cls(max(_LEAST, rest - memory), memory)

    def with_spare(self, tokens: int) -> "PromptBudget":
        """The budget where the conversation leaves so much of its window to memory."""
        return replace(self, memory=max(self.memory, min(self.memory + tokens, _LARGEST_MEMORY)))


@lru_cache(maxsize=128)
def _fixed_tokens(text: str) -> int:
    return estimated_tokens(text)


def with_present(
    messages: Sequence[ModelMessage], present: Present | None, language: Language | None = None
) -> tuple[ModelMessage, ...]:
    """The messages with the present before the user's last words, in their language if no other is given."""
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=None)
    if present is None or last is None:
        return tuple(messages)
    words = messages[last].content
    block = present.block(language or present.language or language_of(words))
    told = messages[last].model_copy(update={"content": f"{block}\n\n{words}"})
    return (*messages[:last], told, *messages[last + 1 :])


class PresentModel:
    """Says the present in each prompt; closing it leaves the model itself open."""

    def __init__(self, model: LanguageModel, present: Present) -> None:
        self._model, self._present = model, present

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
        return await self._model.complete(
            with_present(messages, self._present), tools=tools, schema=schema, params=params
        )

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        async for chunk in self._model.stream(with_present(messages, self._present), tools=tools, params=params):
            yield chunk

    async def aclose(self) -> None:
        """Leave the model open: it belongs to whoever opened it."""
