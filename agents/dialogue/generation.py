"""Generation of one answer: retries within a budget, restarts of broken streams, continuation of cut-off answers."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from agents.models.answer_text import ThoughtFilter, without_thoughts
from agents.models.errors import AnswerCutOff, ModelFailure, ModelUnavailable
from agents.models.language_model import DEFAULTS, Chunk, LanguageModel, ModelMessage, ModelParams, Tool, ToolCall
from bus_schema.message_parts import CUT_OFF_MARKS
from bus_schema.replies import TextPart, restarts
from language.words import Language, language_of
from mindbus.logs import logger

_MOST_CONTINUATIONS = 3
_CONTINUE = {
    Language.ENGLISH: "Your answer was cut off. Continue it exactly where it stops; repeat nothing.",
    Language.RUSSIAN: "Ответ оборвался. Продолжите его ровно с того места, где он кончается; ничего не повторяйте.",
}
_CUT_OFF = dict(zip((Language.ENGLISH, Language.RUSSIAN), CUT_OFF_MARKS, strict=True))
_AWAY = {
    Language.ENGLISH: "The language model is not available right now. Your question is kept: say “try again” later, "
    "and it will be answered.",
    Language.RUSSIAN: "Языковая модель сейчас недоступна. Вопрос сохранён: скажите позже «повтори», и ответ будет.",
}
_TRY_AGAIN = re.compile(
    r"\W*(?:(?:да|ага|ну|давай|пожалуйста|теперь|please|yes|yeah|now|ok|okay|and|so)\W+)*"
    r"(?:да|давай(?:те)?|повтори(?:те)?|попробуй(?:те)?|ответь(?:те)?|(?:попробуй(?:те)?\s+)?(?:ещ[её]\s+раз|снова)"
    r"|yes|yeah|sure|retry|again|(?:please\s+)?try\s+(?:it\s+)?again|answer\s+(?:it|now|me))"
    r"(?:\W+(?:пожалуйста|теперь|сейчас|please|now))*\W*",
    re.IGNORECASE,
)


@dataclass
class RetryBudget:
    """The calls that may fail while one message is answered, and the seconds since the first failure in a row.

    Waits double from `first_wait_s`; an endpoint that names a longer wait than is left is not called again.
    """

    failures: int = 3
    seconds: float = 4.0
    first_wait_s: float = 0.5
    _failing_since: float | None = field(default=None, init=False)

    def wait_s(self, error: ModelUnavailable) -> float | None:
        """Seconds to wait before the next call; None where the budget is used up."""
        now = time.monotonic()
        since = self._failing_since = now if self._failing_since is None else self._failing_since
        wait_s = error.delay.total_seconds() if error.delay else self.first_wait_s
        self.failures, self.first_wait_s = self.failures - 1, 2 * self.first_wait_s
        return wait_s if self.failures >= 0 and now + wait_s - since <= self.seconds else None

    def progress(self) -> None:
        """Begin to count the seconds anew, since the model has said something."""
        self._failing_since = None


class AnswerGeneration:
    """One turn of the model while it is generated; `shown_before` is what the reader has of earlier turns."""

    def __init__(self, model: LanguageModel, budget: RetryBudget, params: ModelParams = DEFAULTS) -> None:
        self._model, self._budget, self._params = model, budget, params
        self.text = ""
        self.calls: tuple[ToolCall, ...] = ()

    async def pieces(
        self, messages: Sequence[ModelMessage], tools: Sequence[Tool], shown_before: str = ""
    ) -> AsyncGenerator[str]:
        """The text, piece by piece; a `TextPart` that restarts begins the whole answer again.

        A broken stream is restarted, an answer at the token limit is continued, three times at most, then marked as
        cut off. Raises ModelFailure; ModelUnavailable when the budget is used up and there is nothing to keep.
        """
        prompt = messages
        for number in range(_MOST_CONTINUATIONS + 1):
            try:
                async for piece in self._restarted(prompt, tools, shown_before):
                    yield piece
                return
            except AnswerCutOff:
                if not self.text.strip():
                    raise
            except ModelFailure:
                if not number:
                    raise
                break
            logger().info("answer cut off", model=self._model.name, characters=len(self.text), continuations=number)
            prompt = (
                *messages,
                ModelMessage(role="assistant", content=self.text),
                ModelMessage(role="user", content=_CONTINUE[language_of(self.text)]),
            )
        mark = cut_off_mark(self.text)
        self.text += mark
        yield mark

    async def _restarted(
        self, messages: Sequence[ModelMessage], tools: Sequence[Tool], shown_before: str
    ) -> AsyncGenerator[str]:
        """One call, as often as the budget allows; a call after a broken one takes its place."""
        kept = self.text
        while True:
            try:
                thoughts = ThoughtFilter()
                async for chunk in self._heard(messages, tools, thoughts):
                    piece = chunk.text
                    if chunk.completion and chunk.completion.finish_reason == "repetition":
                        self.text = kept + chunk.completion.text
                        yield TextPart(shown_before + self.text, restarts=True)
                        return
                    if chunk.completion:
                        self.calls = chunk.completion.tool_calls
                    piece = self._added(piece, kept, shown_before, thoughts, is_whole=chunk.completion is not None)
                    if piece or restarts(piece):
                        yield piece
                return
            except ModelUnavailable as error:
                wait_s = self._budget.wait_s(error)
                is_broken, self.text = self.text != kept, kept
                if is_broken:
                    yield TextPart(shown_before + kept, restarts=True)
                if wait_s is None:
                    raise
                logger().warning("model call failed", model=self._model.name, again_in_s=wait_s, error=str(error))
                await asyncio.sleep(wait_s)

    def _added(self, piece: str, kept: str, shown_before: str, thoughts: ThoughtFilter, *, is_whole: bool) -> str:
        """Take a piece of the text; returns what to show: all anew where thoughts end that looked like the answer."""
        self.text += piece
        said = thoughts.after_unopened(self.text[len(kept) :], is_whole=is_whole)
        if said is None:
            return piece
        self.text = kept + said
        return TextPart(shown_before + self.text, restarts=True)

    async def _heard(
        self, messages: Sequence[ModelMessage], tools: Sequence[Tool], thoughts: ThoughtFilter
    ) -> AsyncGenerator[Chunk]:
        """The stream of one call without what the model thinks aloud, which is progress all the same."""
        is_new = not self.text
        async for chunk in self._model.stream(messages, tools=tools, params=self._params):
            if chunk.text:
                self._budget.progress()
            completion, text = chunk.completion, thoughts.take(chunk.text)
            if completion is not None:
                said = without_thoughts(completion.text) if is_new else ThoughtFilter().take(completion.text)
                completion = completion.model_copy(update={"text": said})
                if not text and not self.text.strip():
                    text, thoughts.has_thoughts = said, True
            yield Chunk(text=text, completion=completion)


def cut_off_mark(text: str) -> str:
    """The end of an answer that is not whole, in its language."""
    return _CUT_OFF[language_of(text)]


def unavailable_message(question: str) -> str:
    """The reason why there is no answer yet, in the language of the question."""
    return _AWAY[language_of(question)]


def asks_again(text: str) -> bool:
    """Whether a message does nothing but ask to try again."""
    return _TRY_AGAIN.fullmatch(text) is not None
