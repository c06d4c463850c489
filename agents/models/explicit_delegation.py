"""A language model that makes the calls which the user asks for in so many words: delegations, the user's tasks.

Small models answer such a request in words, repeat a call without end, or write a call as text.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from itertools import takewhile

from pydantic import BaseModel

from agents.models.conversation import parse_conversation, since_user
from agents.models.errors import AnswerCutOff
from agents.models.explicit_tasks import COMPLETE, next_task_call, with_plain_results, without_ids
from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    LanguageModel,
    ModelMessage,
    ModelParams,
    Tool,
    ToolCall,
)
from language.words import Language, language_of, words

DELEGATE = "delegate_to_"
_NONE = timedelta(0)


class ExplicitRequestModel:
    """Calls what the user's words ask for where the model does not; all other requests go through unchanged."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

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
        return await self._model.complete(messages, tools=tools, schema=schema, params=params)

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        async for chunk in self._answer(messages, tools, params):
            yield chunk

    def _answer(
        self, messages: Sequence[ModelMessage], tools: Sequence[Tool], params: ModelParams
    ) -> AsyncIterator[Chunk]:
        _, since = since_user(messages)
        task_call, plan = _task_call(messages, tools), _planned_calls(messages, tools)
        done = sum(len(message.tool_calls) for message in since)
        if task_call and not since:
            return self._calling((task_call,))
        # After the user's task a small model that has tools goes on to complete the next one.
        if task_call or (done and not tools):
            return self._last_round(messages, params, since)
        if done < len(plan):
            return self._planned_round(messages, tools, params, plan, done)
        if plan:
            return self._after_plan(messages, tools, params, since)
        return self._model.stream(messages, tools=tools, params=params)

    async def _calling(self, calls: tuple[ToolCall, ...]) -> AsyncIterator[Chunk]:
        yield Chunk(
            completion=Completion(
                text="", tool_calls=calls, finish_reason="tool_calls", model_name=self.name, took=_NONE
            )
        )

    async def _after_plan(
        self,
        messages: Sequence[ModelMessage],
        tools: Sequence[Tool],
        params: ModelParams,
        since: Sequence[ModelMessage],
    ) -> AsyncIterator[Chunk]:
        """The model's answer, or more calls; a repeated one ends the tools."""
        async for chunk in self._model.stream(messages, tools=tools, params=params):
            if chunk.completion and _is_repeated(chunk.completion.tool_calls, since):
                async for last in self._last_round(messages, params, since):
                    yield last
                return
            yield chunk

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _planned_round(
        self,
        messages: Sequence[ModelMessage],
        tools: Sequence[Tool],
        params: ModelParams,
        plan: tuple[ToolCall, ...],
        done: int,
    ) -> AsyncIterator[Chunk]:
        """The model's calls, or what is left of the plan in place of an answer or of repeated calls."""
        rest = plan[done:]
        try:
            chunks = [chunk async for chunk in self._model.stream(messages, tools=tools, params=params)]
        except AnswerCutOff:
            # It talks instead of calling.
            async for chunk in self._calling(rest):
                yield chunk
            return
        completion = chunks[-1].completion
        calls = completion.tool_calls if completion else ()
        if completion is None or (calls and not _is_repeated(calls, since_user(messages)[1])):
            for chunk in chunks:
                yield _with_whole_tasks(chunk, plan, done)
            return
        update = {"text": "", "tool_calls": rest, "finish_reason": "tool_calls"}
        yield Chunk(completion=completion.model_copy(update=update))

    async def _last_round(
        self, messages: Sequence[ModelMessage], params: ModelParams, since: Sequence[ModelMessage]
    ) -> AsyncIterator[Chunk]:
        """The answer without tools; a call written as text is replaced by the last result."""
        held: list[Chunk] = []
        is_held, start = True, ""
        async for chunk in self._model.stream(with_plain_results(messages), params=params):
            start += chunk.text
            is_held = is_held and (not start.strip() or start.lstrip()[0] in "`{")
            if is_held:
                held.append(chunk)
                continue
            for each in (*held, chunk):
                yield each
            held.clear()
        if not held:
            return
        completion = held[-1].completion
        results = [without_ids(message.content) for message in since if message.role == "tool"]
        if completion and results and _CALL.search(completion.text):
            held = [Chunk(text=results[-1]), Chunk(completion=completion.model_copy(update={"text": results[-1]}))]
        for each in held:
            yield each


def _planned_calls(messages: Sequence[ModelMessage], tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    names = [tool.name.removeprefix(DELEGATE) for tool in tools if tool.name.startswith(DELEGATE)]
    plan = delegations(parse_conversation(messages).words, names) if names else []
    return tuple(
        ToolCall(id=f"call_{place}", name=f"{DELEGATE}{name}", arguments=json.dumps({"task": task}, ensure_ascii=False))
        for place, (name, task) in enumerate(plan)
    )


def _task_call(messages: Sequence[ModelMessage], tools: Sequence[Tool]) -> ToolCall | None:
    """The call of a task tool; "I've done the report" is no request, and the task manager hears it."""
    conversation = parse_conversation(messages)
    if conversation.instruction is not None:
        return None
    call = next_task_call(conversation.words, conversation.present, (), tools)
    return None if call and call.name == COMPLETE and not _MARKS.search(conversation.words) else call


def _is_repeated(calls: Sequence[ToolCall], since: Sequence[ModelMessage]) -> bool:
    earlier = {(call.name, call.arguments) for message in since for call in message.tool_calls}
    return bool(calls) and all((call.name, call.arguments) in earlier for call in calls)


def _with_whole_tasks(chunk: Chunk, plan: Sequence[ToolCall], done: int) -> Chunk:
    """The chunk with the user's own sentence where a call has a fragment of it, or runs into another one."""
    if chunk.completion is None or not chunk.completion.tool_calls:
        return chunk
    calls = list(chunk.completion.tool_calls)
    for place, (call, planned) in enumerate(zip(calls, plan[done:], strict=False)):
        said, whole = _words_of(call), _words_of(planned)
        others = set[str]().union(*map(_words_of, plan)) - whole
        if call.name == planned.name and (said < whole or said & others):
            calls[place] = call.model_copy(update={"arguments": planned.arguments})
    return chunk.model_copy(update={"completion": chunk.completion.model_copy(update={"tool_calls": tuple(calls)})})


def _words_of(call: ToolCall) -> set[str]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return set()
    return {word.lower() for word in words(str(arguments.get("task", "")))} if isinstance(arguments, dict) else set()


# A call that is written as text.
_CALL = re.compile(r'"name"\s*:\s*"\w+"\s*,\s*"arguments"')
_MARKS = re.compile(r"\b(?:mark|отметь\w*)\b", re.IGNORECASE)
_POLITE = r"(?:\W*(?:пожалуйста|please|could\s+you|can\s+you)\b)?\W*"
_TELLS = r"скажи\w*|сообщи\w*|передай\w*|расскажи\w*|поручи\w*|попроси\w*|tell|inform|remind|have|get|let"
_ASKS_RU = r"спроси\w*|узнай\w*|уточни\w*"
_ASKS = rf"{_ASKS_RU}|ask"
_OWN = r"моему|моего|нашему|нашего|твоему|твоего"
_WHOM = rf"(?:у\s+|от\s+|к\s+)?(?:the\s+|my\s+|your\s+|our\s+|(?:{_OWN})\s+)?"
_SUBAGENT = r"(?:под|суб|саб)-?агент\w*|sub-?agent"
_THEM = r"(?:(?:у\s+)?(?:него|неё|нее|них|его|её|их|ему|ей|им)|it|him|her|them)\b"
_THAT = r"\W*(?:(?:о\s+том\s*,?\s*)?что\b|that\b|to\b(?=\s))?\W*"
_QUOTES = " \t\n.,;:!?«»\"'“”"
# An English infinitive looks like an imperative, so that `and ask` needs the one that is asked.
_THEN = re.compile(
    r"\s*[,;.]?\s*(?:\b(?:а|и|and)\s+)?\b(?:потом|затем|после\s+(?:этого|чего)|then|after\s+that)\b\s*,?\s*"
    rf"|\s*[,;.]?\s+(?:а|и)\s+(?=(?:{_ASKS_RU})\b)"
    rf"|\s*,?\s+and\s+(?=ask\s+(?:{_THEM}|the\s+sub-?agent))"
    rf"|\s*[.;!]\s+(?=(?:{_ASKS})\b)",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"\bмо[её]\s+имя\b|\bменя\s+(?:\w+\s+)?зовут\b|\bmy\s+name\b|\bi\s*(?:am|['’]m)\s+called\b", re.IGNORECASE
)
_FOLLOW_UP = {
    Language.ENGLISH: ("What is my name?", "What do you know about this: {content}?"),
    Language.RUSSIAN: ("Как меня зовут?", "Что известно об этом: {content}?"),
}
_LATIN = dict(zip("абвгдеёзийклмнопрстуфхыэycqwj", "abvgdeeziiklmnoprstufhieikkvi", strict=True)) | {
    "ж": "zh",
    "ц": "ts",
    "ч": "ch",
    "ш": "sh",
    "щ": "sh",
    "ъ": "",
    "ь": "",
    "ю": "iu",
    "я": "ia",
}
_NEAR_CHARS, _NEAR_SHARE = 4, 0.6


def delegations(text: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Sub-agents with the content for them, in order; none where the first part addresses no sub-agent.

    A sub-agent is addressed by its name, in either alphabet and inflected («аналитику» is `analytic`), or as sub-agent.
    A bare `ask it` asks about the content before.
    """
    tasks: list[tuple[str, str]] = []
    for part in _THEN.split(text):
        task = _delegation(part, names, tasks[-1] if tasks else None)
        if task is None and not tasks:
            return []
        if task is not None:
            tasks.append(task)
    return tasks


def content_for(name: str, task: str) -> str:
    """The content of a task that still addresses the sub-agent (`tell the sub-agent that …`), else the task itself."""
    return " ".join(content for _, content in delegations(task, [name])) or task


def _delegation(part: str, names: Sequence[str], last: tuple[str, str] | None) -> tuple[str, str] | None:
    by_word = _names_by_word(part, names)
    named = "|".join(re.escape(word) for word in sorted(by_word, key=len, reverse=True))
    by_kind = rf"(?:{_SUBAGENT})(?:[\s-]+[«\"']?(?P<called>{named})\b[»\"']?)?"
    by_name = rf"(?P<name>{named})\b(?:[\s-]+(?:{_SUBAGENT}))?"
    match = re.match(
        rf"{_POLITE}(?:(?P<tells>{_TELLS})|(?P<asks>{_ASKS}))\b(?:\W*(?:пожалуйста|please)\b)?\W*"
        rf"(?:(?P<whom>{_WHOM}(?:{by_kind}|{by_name}))|{_THEM})?{_THAT}(?P<content>.*)",
        part,
        re.IGNORECASE | re.DOTALL,
    )
    if match is None or not (match["whom"] or last):
        return None
    word = (match["called"] or match["name"] or "").lower()
    to = by_word.get(word) or (names[0] if match["whom"] or last is None else last[0])
    content = match["content"].strip(_QUOTES)
    if not content:
        return (to, _follow_up(last[1])) if match["asks"] and last else None
    return to, f"{content[0].upper()}{content[1:]}{'?' if match['asks'] else '.'}"


def _follow_up(content: str) -> str:
    about_name, about_anything = _FOLLOW_UP[language_of(content)]
    return about_name if _NAME.search(content) else about_anything.format(content=content.rstrip(".?! "))


def _names_by_word(text: str, names: Sequence[str]) -> Mapping[str, str]:
    """Sub-agents by the words that may stand for them here, lower case."""
    words = {word.lower() for word in re.findall(r"[^\W\d_]+", text)}
    near = {word: name for word in words for name in names if _is_near(_folded(word), _folded(name))}
    return near | {name.lower(): name for name in names}


def _folded(word: str) -> str:
    """The word in Latin letters, those of one sound alike."""
    return "".join(_LATIN.get(character, character) for character in word.lower())


def _is_near(word: str, name: str) -> bool:
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, name, strict=False)))
    return shared >= max(_NEAR_CHARS, _NEAR_SHARE * max(len(word), len(name)))
