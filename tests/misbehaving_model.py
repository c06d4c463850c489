"""An endpoint that misbehaves in fifteen ways: which of them, the brief says by a word such as `case-fences`."""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.models import prompt
from tests.llm_server import Drips, Fails, Reply, Request, Says, Stalls, offline_reply

REFUSAL = "As an AI language model I cannot help with that."
_CASE = re.compile(r"case-(\w+)")
_THOUGHTS = '<think>\nThe user wants {"satisfied": maybe}. Let me see…\n</think>\n'
_RECIPE = (
    "Preheat your oven, mash three ripe bananas, melt butter, whisk sugar with eggs, fold flour gently, pour batter "
    "into loaf tins, sprinkle walnuts, bake until golden, cool on wire racks, slice thickly, serve alongside cream."
)
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September")
_CHINESE = "这是一个关于小镇冰场的故事，冰场的余热温暖了游泳池。" * 8


@dataclass
class MisbehavingModel:
    """Counts the calls of each case; `once` says which calls of a step have misbehaved already."""

    calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    once: set[tuple[str, str, str]] = field(default_factory=set)

    def __call__(self, request: Request) -> Reply:
        found = _CASE.search("\n".join(message.content for message in request.messages))
        case = found[1] if found else ""
        read = prompt.read(request.messages)
        self.calls[case, read.task, read.step] += 1
        if request.messages[-2].role == "assistant":
            return _rest(request)
        reply = offline_reply(request)
        if not isinstance(reply, Says):
            return reply
        is_first = (case, read.task, read.step) not in self.once
        self.once.add((case, read.task, read.step))
        answer = _VERDICTS if read.step == "self-critique" else _TEXTS
        return answer[case](reply.text, is_first) if case in answer else reply


def _rest(request: Request) -> Reply:
    """The continuation of a text that broke off, or of an answer that did not fit."""
    said = request.messages[-2].content
    asked = [message for message in request.body["messages"] if message["role"] != "assistant"][:2]
    whole = offline_reply(Request({**request.body, "messages": asked}, request.headers))
    if isinstance(whole, Says) and whole.text.startswith(said):
        return Says(whole.text[len(said) :])
    return Says("It is rather good, I think.")


def _half(text: str) -> str:
    return text[: len(text) // 2]


def _busy_at_first(text: str, is_first: bool) -> Reply:
    return Fails.busy(500) if is_first else Says(text)


def _cut_off_at_first(text: str, is_first: bool) -> Reply:
    return Says(_half(text), finish_reason="length") if is_first else Says(text)


def _stalled_at_first(text: str, is_first: bool) -> Reply:
    return Stalls(len(_half(text)) // 24 + 1, text) if is_first else Says(text)


def _in_circles(text: str, _is_first: bool) -> Reply:
    questions = "\n".join(f"- What did the rink of the town answer in {month}?" for month in _MONTHS)
    return Drips(0.0, f"{text}\n\n" + f"{questions}\n" * 400)


def _with_key(text: str, _is_first: bool) -> Reply:
    return Says(json.dumps({**json.loads(text), "score": 7}))


Misbehaves = Callable[[str, bool], Reply]
_TEXTS: dict[str, Misbehaves] = {
    "fences": lambda text, _: Says(f"```markdown\n{text}\n```"),
    "think": lambda text, _: Says(_THOUGHTS + text),
    "empty": lambda _text, _: Says(" \n"),
    "refusal": lambda _text, _: Says(REFUSAL),
    "offtopic": lambda _text, _: Says(_RECIPE),
    "language": lambda _text, _: Says(_CHINESE),
    "errors": _busy_at_first,
    "length": _cut_off_at_first,
    "drip": lambda text, _: Drips(0.002, text),
    "stall": _stalled_at_first,
    "circles": _in_circles,
}
_VERDICTS: dict[str, Misbehaves] = {
    "prose": lambda _text, _: Says("It is rather good, I think. Perhaps a little long."),
    "fences": lambda text, _: Says(f"```json\n{text}\n```"),
    "chatter": lambda text, _: Says(f"Sure! Here is my verdict:\n{text}\nLet me know if you need more."),
    "key": _with_key,
    "remarks": lambda _text, _: Says(json.dumps({"satisfied": False, "remarks": [f"Mend {n}." for n in range(9)]})),
    "think": lambda text, _: Says(_THOUGHTS + text),
    "empty": lambda _text, _: Says(""),
    "length": lambda _text, _: Says('{"satisfied": false, "remarks": ["Shorter.", "Cle', finish_reason="length"),
    "refusal": lambda _text, _: Says(REFUSAL),
}
CASES = tuple(sorted({*_TEXTS, *_VERDICTS}))
