"""Delegations that a user asks for in so many words: `tell the sub-agent …, then ask it …`."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from config.shipped import subagent_names
from language.words import Language, language_of, without_gaps

DELEGATE = "delegate_to_"
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
    said = without_gaps(text)
    return list((_known_delegations if len(said) <= _KNOWN_CHARS else _delegations)(said, tuple(names)))


def _delegations(text: str, names: tuple[str, ...]) -> Sequence[tuple[str, str]]:
    tasks: list[tuple[str, str]] = []
    for part in _THEN.split(text):
        task = _delegation(part, names, tasks[-1] if tasks else None)
        if task is None and not tasks:
            return ()
        if task is not None:
            tasks.append(task)
    return tasks


# The dialogue's explicit requests and the offline model both ask.
_KNOWN_CHARS = 4096
_known_delegations = lru_cache(maxsize=128)(_delegations)


def is_delegation(text: str) -> bool:
    """Whether a message has something for a sub-agent that has a file, and so neither for the user nor to be kept."""
    return bool(delegations(text, sorted(subagent_names())))


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
    if match["asks"] and _NAME.search(content):
        return to, _follow_up(content)
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
