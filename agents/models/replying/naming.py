"""What somebody is called: told in so many words, asked in others."""

import re
from collections.abc import Iterable

_NAME = r"([^\W\d_][\w’'-]*(?:\s+[^\W\d_a-zа-яё][\w’'-]*){0,2})"
_TOLD = tuple(
    re.compile(rf"(?i:{words})\s*[:—–-]?\s*{_NAME}")
    for words in (
        r"\bменя\s+(?:теперь\s+)?зовут",
        r"\bмо[её]\s+имя\b(?:\s+это)?",
        r"\bпользователя\s+зовут",
        r"\bимя\s+пользователя\b",
        r"\bmy\s+name(?:\s+is|['’]s)",
        r"\bi\s*(?:am|['’]m)\s+called",
        r"\bthe\s+user['’]s\s+name\s+is",
        r"\bthe\s+user\s+is\s+(?:called|named)",
    )
)
_ASKED = re.compile(
    r"\bкак\s+(?:меня|пользователя)\s+зовут|\bкак\s+зовут\s+(?:меня|пользователя)|\bкто\s+я\b(?!\s+\w)|"
    r"\b(?:мо[её]\s+имя|имя\s+пользователя)\W*$|"
    r"\bwhat(?:\s+is|['’]s)\s+(?:my|the\s+user['’]s)\s+name|\bwhat\s+(?:my|the\s+user['’]s)\s+name\s+is|"
    r"\bwho\s+(?:am\s+i|i\s+am)\b|\bwhat\s+(?:am\s+i|is\s+the\s+user)\s+(?:called|named)|"
    r"\b(?:my|the\s+user['’]s)\s+name\W*$",
    re.IGNORECASE,
)
_NO_NAMES = frozenset({"как", "не", "так", "кто", "что", "what", "not", "who", "and", "и", "а", "is"})


def asks_who_they_are(text: str) -> bool:
    """Whether somebody asks what they are called."""
    return bool(_ASKED.search(text))


def name_told(texts: Iterable[str]) -> str | None:
    """The name that was told last, the latest text first."""
    for text in texts:
        if asks_who_they_are(text):
            continue
        found = [match[1] for told in _TOLD for match in told.finditer(text) if match[1].lower() not in _NO_NAMES]
        if found:
            return found[-1]
    return None


def only_tells_name(text: str) -> bool:
    """Whether there is nothing else in it to take up."""
    rest = text
    for told in _TOLD:
        rest = told.sub("", rest)
    return rest != text and not re.search(r"\w{4,}", rest)
