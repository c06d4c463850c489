"""Demands that a brief makes of the writer (length, tone, readers), told from what it says to the reader."""

import re
from collections.abc import Iterable

from language.words import words

_HEADINGS = frozenset(
    heading.strip()
    for heading in """
    audience|readers|readership|target audience|for whom|tone|style|tone and style|format|length|requirements|task|
    assignment|the task|what to write|what we need|instructions|guidelines|for the writer|for the author|constraints|
    deadline|audience and tone|length and format|request|brief|
    аудитория|читатели|для кого|целевая аудитория|тон|стиль|тон и стиль|формат|объем|объём|объем и формат|
    объём и формат|требования|требования к тексту|задача|задание|техническое задание|что написать|что нужно|
    инструкции|указания|для автора|автору|ограничения|срок|сроки|пожелания|аудитория и тон|просьба
    """.replace("\n", "").split("|")
)
_ORDER = re.compile(
    r"^(?:please|write|prepare an? |draft an? |пожалуйста|напиши|напишите|написать|подготовь|подготовьте|составьте|"
    r"нужно написать|требуется написать|нужна статья|нужен текст|нужен материал)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"^(?:avoid|use|keep|include|mention|do not|don't|make sure|begin|start|end|close|explain|aim|be |focus|"
    r"the (?:article|text|piece|story|tone|title|headline)|we (?:need|want)|"
    r"избегай|избегайте|не |используй|используйте|упомян|укаж|сделай|сделайте|начн|закончи|объясни|тон|стиль|"
    r"объ[её]м|стат|текст|материал|заголовок|нам нуж|хотим|нужно)",
    re.IGNORECASE,
)
_ABOUT_WRITING = re.compile(
    r"\b(?:article|text|piece|story|reader\w*|audience|tone|jargon|headline|title|paragraphs?|words|sections?|"
    r"стать[яюеи]|текст\w?|материала?|читател\w*|аудитори\w*|тоне?|жаргон\w*|заголов\w*|абзац\w*|слов|раздел\w*)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^\*{0,2}([^\W\d][\w /-]{0,24}):\*{0,2}\s+\S")
_LENGTH = re.compile(
    r"(\d[\d  ]{1,6})(?:\s*(?:[-–—]|to|and|до|и)\s*(\d[\d  ]{1,6}))?\s*(?:words\b|слов\b)", re.IGNORECASE
)


def is_demand_heading(heading: str) -> bool:
    """Check whether the section under this heading addresses the writer."""
    return " ".join(words(heading)).lower() in _HEADINGS


def is_demand(sentence: str) -> bool:
    """Check whether a sentence addresses the writer."""
    label = _LABEL.match(sentence)
    bare = sentence.lstrip("*_> ")
    if _ORDER.match(bare) or (label and is_demand_heading(label[1])):
        return True
    return bool(_WISH.match(bare) and _ABOUT_WRITING.search(bare))


def length_asked(demands: Iterable[str]) -> tuple[int, int] | None:
    """Least and greatest length in words, from the first demand that names one."""
    for demand in demands:
        if found := _LENGTH.search(demand):
            first, second = (int("".join(filter(str.isdigit, part or "0"))) for part in found.groups())
            return (first, second) if second else (first * 3 // 4, first)
    return None
