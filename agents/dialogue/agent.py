"""Talks with a user: what was said, what is remembered, then the next turn."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from agents.guides import Guide, shipped_guide
from agents.models.conversation import Turn, lay_out_conversation
from agents.models.language_model import LanguageModel, Message
from agents.models.prompt import Material
from agents.recollection import MEMORY
from agents.text import words
from bus_schema.dialogue import HIDDEN_MARK, DialogueMessage, MessageKind

AGENT = "dialogue"
_WINDOW_WORDS = 1500
_MEMORY_WORDS = 400


class NothingSaid(Exception):
    """The model's answer was empty; try another model or another prompt."""


@dataclass(frozen=True)
class Snippet:
    """Something remembered that may bear on the talk; `id` says where it is from."""

    id: str
    text: str


class Dialogue:
    """The assistant's part in a conversation."""

    def __init__(
        self,
        model: LanguageModel,
        guide: Guide | None = None,
        *,
        window_words: int = _WINDOW_WORDS,
        memory_words: int = _MEMORY_WORDS,
    ) -> None:
        self._model = model
        self._guide = guide or shipped_guide(AGENT)
        self._window_words, self._memory_words = window_words, memory_words

    async def answer(self, said: Sequence[DialogueMessage], memory: Sequence[Snippet] = ()) -> AsyncIterator[str]:
        """The next turn, piece by piece, to the last of these messages. Raises ModelFailure, NothingSaid."""
        has_spoken = False
        async for chunk in self._model.stream(self.prompt(said, memory), params=self._guide.model):
            text = chunk.text
            if chunk.completion and not has_spoken:
                text = text or chunk.completion.text
            has_spoken = has_spoken or bool(text.strip())
            if text:
                yield text
        if not has_spoken:
            raise NothingSaid(NothingSaid.__doc__)

    def prompt(self, said: Sequence[DialogueMessage], memory: Sequence[Snippet] = ()) -> tuple[Message, ...]:
        """What the model is shown: as much of the talk, of what is remembered as there is room for."""
        window = in_window(said, self._window_words)
        materials = [Material(snippet.id, MEMORY, snippet.text) for snippet in self.shown(memory)]
        return lay_out_conversation(self._guide.system, map(_turn, window), materials)

    def shown(self, memory: Sequence[Snippet]) -> Sequence[Snippet]:
        """As much of what is remembered as there is room for."""
        room = self._memory_words
        for number, snippet in enumerate(memory):
            room -= len(words(snippet.text))
            if room < 0:
                return memory[:number]
        return memory


def in_window(said: Sequence[DialogueMessage], budget_words: int) -> list[DialogueMessage]:
    """The end of the talk that fits, the last message in any case; it begins with the user."""
    window: list[DialogueMessage] = []
    room = budget_words
    for message in reversed(said):
        room -= len(words(message.content or ""))
        if window and room < 0:
            break
        window.append(message)
    window.reverse()
    # Some models refuse a conversation that the assistant begins.
    while len(window) > 1 and window[0].role == "assistant":
        window.pop(0)
    return window


def _turn(message: DialogueMessage) -> Turn:
    # Only the kind makes an instruction of a message: the mark at its beginning is something that anybody can type.
    is_instruction = message.kind is MessageKind.HIDDEN
    text = message.content or ""
    return Turn(message.role, text.removeprefix(HIDDEN_MARK) if is_instruction else text, is_instruction)
