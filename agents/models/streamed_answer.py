"""An answer put together from the pieces that an OpenAI-compatible endpoint streams."""

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from operator import itemgetter

from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice as StreamedChoice
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from agents.models.answer_text import RepetitionWatch
from agents.models.language_model import Completion, TokenUsage, ToolCall
from language.words import estimated_tokens


def usage_of(usage: CompletionUsage | None) -> TokenUsage:
    if usage is None:
        return TokenUsage()
    return TokenUsage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def _readable(piece: ChatCompletionChunk) -> Iterator[StreamedChoice]:
    for choice in (piece.choices or ())[:1]:
        if "delta" in choice.model_fields_set:
            yield choice


def _thoughts(choice: StreamedChoice) -> str:
    # Not of OpenAI's: servers of thinking models send them apart, under either name.
    extra = choice.delta.model_extra or {}
    return str(extra.get("reasoning_content") or extra.get("reasoning") or "")


def _begins_another(fragment: ChoiceDeltaToolCall, last: dict[str, str]) -> bool:
    """Whether a fragment names a function again; an id alone may also come anew with each piece of the arguments."""
    if not last["name"] or fragment.function is None or not fragment.function.name:
        return False
    return fragment.id != last["id"] if fragment.id and last["id"] else bool(last["arguments"])


class StreamedAnswer:
    """A streamed answer being put together; tool calls come in fragments that only their index holds together.

    Of one that is ended early the cost is an estimate, by the `prompt` and the pieces that have come.
    """

    def __init__(self, model: str, prompt: Sequence[object] = ()) -> None:
        self._prompt = prompt
        self.finish_reason: str | None = None
        self.declined = self.has_begun = False
        self._began = time.monotonic()
        self._model = model
        self._texts: list[str] = []
        self._calls: list[tuple[int, dict[str, str]]] = []
        self._usage = TokenUsage()
        self.characters = 0
        self._repetition = RepetitionWatch()

    def ends_early(self, most_characters: float, *, is_object: bool) -> bool:
        """End an answer that is too long for its tokens, or that goes round in circles; half an object is no use."""
        is_too_long, goes_round = self.characters > most_characters, self._repetition.goes_round
        if is_too_long or goes_round:
            self.finish_reason = "length" if is_too_long or is_object else "repetition"
            # Whoever is not listened to does not tell what it has cost.
            self._usage = TokenUsage(
                prompt_tokens=estimated_tokens(str(self._prompt)), completion_tokens=sum(map(bool, self._texts))
            )
        return is_too_long or goes_round

    def take(self, piece: object) -> str:
        if not isinstance(piece, ChatCompletionChunk):
            return ""
        self._model = piece.model or self._model
        if piece.usage:
            self._usage = usage_of(piece.usage)
        text = ""
        for choice in _readable(piece):
            self.finish_reason = choice.finish_reason or self.finish_reason
            text = choice.delta.content or ""
            self.declined = self.declined or bool(choice.delta.refusal)
            self.has_begun = self.has_begun or bool(text or choice.delta.tool_calls or _thoughts(choice))
            self._texts.append(text)
            self.characters += len(text)
            self._repetition.read(text)
            for fragment in choice.delta.tool_calls or ():
                call = self._call_of(fragment)
                call["id"] = fragment.id or call["id"]
                if fragment.function:
                    call["name"] += fragment.function.name or ""
                    call["arguments"] += fragment.function.arguments or ""
        return text

    def _call_of(self, fragment: ChoiceDeltaToolCall) -> dict[str, str]:
        """The call that a fragment belongs to: that of its index; some servers give all calls the same, or none."""
        index = fragment.index or 0
        last = next((call for at, call in reversed(self._calls) if at == index), None)
        if last is not None and not _begins_another(fragment, last):
            return last
        self._calls.append((index, {"id": "", "name": "", "arguments": ""}))
        return self._calls[-1][1]

    def completion(self, retries: int = 0) -> Completion:
        """The answer; of one that goes round, what was there before."""
        text = "".join(self._texts)
        goes_round = self.finish_reason == "repetition"
        if goes_round:
            text = text[: self._repetition.fresh_chars]
        return Completion(
            text=text,
            tool_calls=tuple(ToolCall(**call) for _, call in sorted(self._calls, key=itemgetter(0))),
            finish_reason="repetition" if goes_round else "stop",
            usage=self._usage,
            model_name=self._model,
            took=timedelta(seconds=time.monotonic() - self._began),
            retries=retries,
        )
