"""Dialogue agent: the next turn from what was said, what is remembered, and sub-agents that can help."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agents.configuration.prompts import Guide, shipped_guide
from agents.dialogue.generation import AnswerGeneration, RetryBudget
from agents.keywords import closest_statements, statements_of
from agents.models.conversation import chat_prompt, fit_window, normalise_calls
from agents.models.errors import EmptyAnswer
from agents.models.language_model import LanguageModel, ModelMessage, Tool, ToolCall
from agents.models.prompt import ATTACHED, EARLIER, MEMORY, UNCERTAIN, Material, PromptBudget, with_present
from agents.present import Present
from bus_schema.dialogue import HIDDEN_MARK, DialogueMessage, MessageKind
from bus_schema.history import DEFAULT_CONTEXT_TOKENS
from language.sentences import is_question
from language.words import Language, estimated_tokens, language_of

_LONGEST_TEXT = 300
# Weighted share of a question's terms that a statement has which may answer it.
_ANSWERS = 0.3
# The labels around a piece of memory.
_LABEL_TOKENS = 25
_NO_END = {
    Language.ENGLISH: "I have asked sub-agents {n} times without coming to an end. This is the last I heard: {last}",
    Language.RUSSIAN: "Обращений к подагентам было {n}, но конца нет. Вот последнее, что удалось узнать: {last}",
}
AGENT = "dialogue"
# What is said before a sub-agent is asked, then what is said afterwards.
BETWEEN = "\n\n"
_PHRASES = {
    Language.ENGLISH: ("Tell the user: {message}", "What may help to say it: {context}"),
    Language.RUSSIAN: ("Сообщи пользователю: {message}", "Что поможет сказать это: {context}"),
}


@dataclass(frozen=True)
class DelegationRound:
    """One answer of the model in which it called for help, with what came of each call, in their order.

    It `is_open` where calls are left to whoever asked: the answer goes on once they bring the results; from then on
    they have been told what was said till then.
    """

    said: ModelMessage
    results: tuple[ModelMessage, ...]
    is_open: bool = False
    is_told: bool = False

    @property
    def messages(self) -> tuple[ModelMessage, ...]:
        """The round as the model is shown it afterwards."""
        return (self.said, *self.results)

    @property
    def untold(self) -> str:
        """Beginning of the answer that was said with the calls, unless whoever asks has it already."""
        return self.said.content + BETWEEN if self.said.content.strip() and not self.is_told else ""


class Delegator(Protocol):
    """Whom the master may turn to while it answers one message."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools that the model may call."""

    @property
    def most_rounds(self) -> int:
        """Number of rounds after which the model has to answer."""

    @property
    def completed(self) -> Sequence[DelegationRound]:
        """Rounds that were completed before."""

    @property
    def choice(self) -> str | None:
        """Tool that the model has to call first, see `ModelParams`."""

    async def delegate(self, number: int, text: str, calls: Sequence[ToolCall]) -> DelegationRound:
        """Carry out the calls of one answer; rounds are counted from 0."""
        ...


class NoDelegator:
    """Delegator without sub-agents."""

    tools: Sequence[Tool] = ()
    most_rounds = 0
    completed: Sequence[DelegationRound] = ()
    choice: str | None = None

    async def delegate(self, number: int, text: str, calls: Sequence[ToolCall]) -> DelegationRound:
        """Carry out the calls of one answer; rounds are counted from 0."""
        raise AssertionError("unreachable: there are no tools")


@dataclass(frozen=True)
class MemorySnippet:
    """A text from memory with the id of its origin; uncertain where it may not bear on the conversation.

    Of a file that the user has attached the id is its name.
    """

    id: str
    text: str
    is_uncertain: bool = False
    is_attached: bool = False

    @property
    def type(self) -> str:
        """Type of the material for the model."""
        return ATTACHED if self.is_attached else UNCERTAIN if self.is_uncertain else MEMORY


class DialogueAgent:
    """The assistant's part in a conversation."""

    def __init__(
        self,
        model: LanguageModel,
        guide: Guide | None = None,
        *,
        context_tokens: int = DEFAULT_CONTEXT_TOKENS,
        budget: Callable[[], RetryBudget] = RetryBudget,
        quotes: bool = True,
    ) -> None:
        """With `quotes`, what the user has said that may answer a question is repeated before it.

        A small model looks back at a few words better than at the whole conversation.
        """
        self._model, self._budget, self._quotes = model, budget, quotes
        # A broken file is known at the start; where the files lie is not looked up for every answer.
        self._guides = {language: guide or shipped_guide(AGENT, language) for language in Language}
        self.context_tokens = context_tokens

    async def answer(
        self,
        said: Sequence[ModelMessage],
        memory: Sequence[MemorySnippet] = (),
        help: Delegator | None = None,
        present: Present | None = None,
    ) -> AsyncGenerator[str]:
        """The next turn, piece by piece, to the last of these messages; helpers are asked in between.

        A `TextPart` that restarts begins the turn again. Raises ModelFailure.
        """
        helper = help or NoDelegator()
        shown = self.prompt(said, memory, present, helper.tools)
        guide = self._guide(_language(said, present))
        rounds: list[ModelMessage] = []
        told, first, budget = "", len(helper.completed), self._budget()
        for number in range(helper.most_rounds + 1):
            if number < len(helper.completed):
                completed = helper.completed[number]
                if completed.untold:
                    told += completed.untold
                    yield completed.untold
                rounds += completed.messages
                continue
            turn = AnswerGeneration(
                self._model, budget, guide.model.choosing(helper.choice if number == first else None)
            )
            tools = helper.tools if number < helper.most_rounds else ()
            async for piece in turn.pieces((*shown, *rounds), tools, told):
                yield piece
            if not (tools and turn.calls):
                if not turn.text.strip():
                    yield _inconclusive(rounds)
                return
            if turn.text.strip():
                told += turn.text + BETWEEN
                yield BETWEEN
            done = await helper.delegate(number, turn.text, normalise_calls(turn.calls, prefix=f"call_{number}"))
            if done.is_open:
                return
            rounds += done.messages

    def prompt(
        self,
        said: Sequence[ModelMessage],
        memory: Sequence[MemorySnippet] = (),
        present: Present | None = None,
        tools: Sequence[Tool] = (),
    ) -> tuple[ModelMessage, ...]:
        """Messages for the model: the conversation's window with the snippets that fit."""
        window, budget = self.window(said, present, tools)
        materials = [Material(each.id, each.type, each.text) for each in fitting_memory(memory, budget)]
        materials += self._earlier_statements(window)
        language = _language(said, present)
        asked = chat_prompt(self._guide(language).system, window, materials)
        return with_present(asked, present, language)

    def window(
        self, said: Sequence[ModelMessage], present: Present | None = None, tools: Sequence[Tool] = ()
    ) -> tuple[Sequence[ModelMessage], PromptBudget]:
        """Messages that the prompt shows which answers the last of these; its budget, memory having the rest."""
        language = _language(said, present)
        guide = self._guide(language)
        fixed = guide.system + (present.block(language) if present else "")
        budget = PromptBudget.of(self.context_tokens, fixed, tools, guide.model.max_tokens)
        shown, spare = fit_window(said, budget.window)
        budget = budget.with_spare(spare)
        earlier = sum(_LABEL_TOKENS + estimated_tokens(each.text) for each in self._earlier_statements(shown))
        return shown, replace(budget, memory=max(0, budget.memory - earlier))

    def _earlier_statements(self, window: Sequence[ModelMessage]) -> list[Material]:
        """Statements of the user that may answer the question with which the window ends, if it ends with one."""
        question = window[-1].content if window else ""
        if not (self._quotes and is_question(question)):
            return []
        told = statements_of(message.content for message in window[:-1] if message.role == "user")
        found = closest_statements(question, [each for each in told if len(each) <= _LONGEST_TEXT], _ANSWERS)
        return [Material(f"earlier_{number}", EARLIER, text) for number, text in enumerate(found, 1)]

    def _guide(self, language: Language) -> Guide:
        return self._guides[language]


def fitting_memory(memory: Sequence[MemorySnippet], budget: PromptBudget) -> Sequence[MemorySnippet]:
    """The first snippets that fit the budget, by estimated tokens with their labels."""
    room = budget.memory
    for number, snippet in enumerate(memory):
        room -= _LABEL_TOKENS + estimated_tokens(snippet.text)
        if room < 0:
            return memory[:number]
    return memory


def _language(said: Sequence[ModelMessage], present: Present | None) -> Language:
    return (present.language if present else None) or language_of(said[-1].content if said else "")


def _inconclusive(rounds: Sequence[ModelMessage]) -> str:
    """The answer where the model gives none, but calls tools without end. Raises EmptyAnswer if it called none."""
    if not rounds:
        raise EmptyAnswer
    results = [message.content for message in rounds if message.role == "tool"]
    last = results[-1][:_LONGEST_TEXT] if results else "—"
    return _NO_END[language_of(last)].format(n=len(results), last=last)


def spoken(message: DialogueMessage) -> ModelMessage:
    """The message as the model is shown it: its kind alone makes it an instruction, since users can type the mark."""
    text = message.content or ""
    if message.kind is MessageKind.HIDDEN:
        return ModelMessage(role="system", content=text.removeprefix(HIDDEN_MARK))
    return ModelMessage(role=message.role, content=text)


def hidden_instruction(message: str, context: str = "") -> str:
    """The content of the hidden message, as it is stored."""
    tell, helpful = _PHRASES[language_of(message)]
    lines = [tell.format(message=" ".join(message.split()))]
    if context.strip():
        lines.append(helpful.format(context=" ".join(context.split())))
    return HIDDEN_MARK + "\n".join(lines)
