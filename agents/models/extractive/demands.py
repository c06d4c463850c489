"""What a brief asks of the text, as opposed to what it tells."""

import re

from language.words import words

_HEADINGS = frozenset(
    """
    audience|readers|readership|tone|style|tone and style|style and tone|format|length|requirements|task|assignment|
    the task|the assignment|what to write|what we need|what we want|deliverable|deliverables|instructions|guidelines|
    for the writer|for the author|notes for the writer|constraints|deadline|for whom|target audience|
    audience and tone|length and format|call to action|request|brief
    аудитория|читатели|для кого|целевая аудитория|тон|стиль|тон и стиль|стиль и тон|формат|объем|объём|объем и формат|
    объём и формат|требования|задача|задание|что написать|что нужно|что требуется|инструкции|указания|для автора|
    автору|ограничения|срок|сроки|пожелания|заметки для автора|требования к тексту|техническое задание|
    аудитория и тон|просьба
    """.replace("\n", "|").split("|")
)
_HEADINGS = frozenset(heading.strip() for heading in _HEADINGS if heading.strip())

_ORDERS = re.compile(
    r"^(?:please|write|prepare an? |draft an? |пожалуйста|напиши|напишите|написать|подготовь|подготовьте|составьте|"
    r"нужно написать|требуется написать|нужна статья|нужен текст|нужен материал)\b",
    re.IGNORECASE,
)
_WISHES = re.compile(
    r"^(?:avoid|use|keep|include|mention|do not|don't|make sure|begin|start|end|close|explain|aim|be |focus|"
    r"the (?:article|text|piece|story|tone|title|headline)|we (?:need|want)|"
    r"избегай|избегайте|не |используй|используйте|упомян|укаж|сделай|сделайте|начн|закончи|объясни|тон|стиль|"
    r"объ[её]м|стат|текст|материал|заголовок|нам нуж|хотим|нужно)",
    re.IGNORECASE,
)
_WRITING = re.compile(
    r"\b(?:article|text|piece|story|reader|readers|readership|audience|tone|jargon|headline|title|paragraphs?|words|"
    r"sections?|статья|статью|статье|статьи|текст|тексте|текста|материал|материала|читател\w*|аудитори\w*|тон|тоне|"
    r"жаргон\w*|заголов\w*|абзац\w*|слов|раздел\w*)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^\*{0,2}([^\W\d][\w /-]{0,24}):\*{0,2}\s+\S")
_LONGEST_LABELLED_WORDS = 14
_LENGTH = re.compile(
    r"(\d[\d  ]{1,6})(?:\s*(?:[-–—]|to|and|до|и)\s*(\d[\d  ]{1,6}))?\s*(?:words\b|слов\b)", re.IGNORECASE
)


def is_demanding(heading: str) -> bool:
    """Whether the section under this heading speaks to the writer and not to the reader."""
    return " ".join(word.lower() for word in words(heading)) in _HEADINGS


def is_labelled(line: str) -> bool:
    """Whether a line reads like `Status: draft`, as the head of a document does."""
    return bool(_LABEL.match(line)) and len(words(line)) <= _LONGEST_LABELLED_WORDS


def is_demand(sentence: str) -> bool:
    bare = sentence.lstrip("*_> ")
    label = _LABEL.match(sentence)
    if _ORDERS.match(bare) or (label and is_demanding(label[1])):
        return True
    return bool(_WISHES.match(bare) and _WRITING.search(bare))


def words_asked(demands: list[str]) -> tuple[int, int] | None:
    """The least and the greatest length that the brief asks for."""
    for demand in demands:
        if found := _LENGTH.search(demand):
            first, second = (int("".join(filter(str.isdigit, part))) if part else 0 for part in found.groups())
            return (first, second) if second else (first * 3 // 4, first)
    return None
