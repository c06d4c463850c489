"""Material of an article: sections of passages that may be quoted, and demands on the writer (length, tone, reader)."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

from agents.keywords import centrality
from language.markdown import BlockKind, MarkdownBlock, parse, plain
from language.sentences import leans_back, sentences
from language.words import Language, first_words, language_of, terms, words

_TITLE_LABEL = re.compile(r"^(?:brief|article brief|topic|бриф|задание|тема)\s*[:.—–-]\s*", re.IGNORECASE)
_BARE_LINK = re.compile(r"!?\[[^\]]*\]\([^)]*\)|<?https?://\S+>?")
_INTRODUCED = frozenset({BlockKind.ITEM, BlockKind.TABLE, BlockKind.CODE, BlockKind.QUOTE})
_LATEST_TITLE = 3
_LONGEST_TITLE_CHARS = 90
_LONGEST_TITLE_WORDS = 9
# Tables and listings have many words, which makes them look more central than they are to a reader.
_KIND_WEIGHTS = {BlockKind.TABLE: 0.6, BlockKind.CODE: 0.3}
_FIGURE_BONUS, _OPENING_BONUS = 0.15, 0.25
# A listing of this size is left in the material.
_BULKY_LINES, _BULKY_CHARS = 16, 4000
# Headings and sentences that address the writer.
_DEMAND_HEADINGS = frozenset(
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


@dataclass(frozen=True, kw_only=True)
class Passage(MarkdownBlock):
    """A sentence, a list item, a table or a code block, verbatim.

    `leans_on` is the place of the passage without which this one makes no sense: the antecedent of its pronoun, or the
    line that introduces its list.
    """

    place: int
    section: int
    paragraph: int
    leans_on: int | None = None
    introduces: bool = False
    is_question: bool = False
    weight: float = 0.0

    @cached_property
    def length_words(self) -> int:
        return len(words(self.text))

    @cached_property
    def terms(self) -> frozenset[str]:
        """Stems of its meaningful words."""
        return frozenset(terms(self.text))

    @property
    def is_quotable(self) -> bool:
        """Check whether the passage can be added to a text for its own sake."""
        is_bulky = self.text.count("\n") >= _BULKY_LINES or len(self.text) > _BULKY_CHARS
        return not (self.introduces or self.is_question or is_bulky)


@dataclass(frozen=True)
class Source:
    """The material's passages; `sections` are headings, empty for what stands before the first one."""

    language: Language
    title: str
    sections: tuple[str, ...]
    passages: tuple[Passage, ...]
    demands: tuple[str, ...]

    @property
    def required_length(self) -> tuple[int, int] | None:
        """Least and greatest length in words that the material asks for."""
        return required_length(self.demands)

    def of_section(self, section: int) -> list[Passage]:
        return [passage for passage in self.passages if passage.section == section]

    def with_support(self, passage: Passage) -> list[Passage]:
        """The passage after everything it leans on."""
        chain = [passage]
        while (below := chain[0].leans_on) is not None:
            chain.insert(0, self.passages[below])
        return chain


def read_source(texts: Sequence[str]) -> Source:
    """Read the material; demands on the writer are kept apart from what is to be told."""
    title, blocks = _title([block for text in texts for block in parse(text)])
    reader = _Reader()
    for heading, members in _sections(blocks).items():
        reader.read(heading, members)
    opening = next((plain(each.text) for each in reader.passages if each.kind in (BlockKind.PROSE, BlockKind.ITEM)), "")
    return Source(
        language=language_of("\n".join(block.text for block in blocks) or title),
        title=title or first_words(opening, _LONGEST_TITLE_WORDS).rstrip("."),
        sections=tuple(reader.sections),
        passages=tuple(_weighted(reader.passages)),
        demands=tuple(reader.demands),
    )


def heaviest(passages: Iterable[Passage]) -> list[Passage]:
    """Passages by weight, the heaviest first."""
    return sorted(passages, key=lambda passage: (-passage.weight, passage.place))


def statement_key(text: str) -> str:
    """The words of a statement in small letters: equal for texts that differ in punctuation or typography alone."""
    return " ".join(words(text)).lower().replace("’", "'") or text


def are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Check that two sets of terms, of at least 3 each, overlap by three quarters of their union."""
    return min(len(one), len(other)) > 2 and len(one & other) >= 0.75 * len(one | other)


class _Reader:
    """Collects passages; each text is kept once, however often the material repeats it."""

    def __init__(self) -> None:
        self.sections: list[str] = []
        self.passages: list[Passage] = []
        self.demands: list[str] = []
        self._known: set[str] = set()
        self._paragraph = 0
        self._start = 0  # no passage leans on what stands before this place
        self._introducer: int | None = None

    def read(self, heading: str, blocks: Sequence[MarkdownBlock]) -> None:
        if is_demand_heading(heading):
            self.demands.extend(plain(block.text) for block in blocks if block.kind is not BlockKind.HEADING)
            return
        before = len(self.passages)
        self.sections.append(heading)
        self._part()
        for block, following in zip_longest(blocks, blocks[1:]):
            self._block(block, following.kind if following else BlockKind.PROSE)
        if len(self.passages) == before:
            self.sections.pop()

    def _part(self) -> None:
        self._start = len(self.passages)
        self._introducer = None

    def _block(self, block: MarkdownBlock, following: BlockKind) -> None:
        if block.kind in (BlockKind.HEADING, BlockKind.RULE):
            self._part()
        elif block.kind is BlockKind.PROSE:
            self._prose(block, following)
        elif block.kind is BlockKind.ITEM and is_demand(block.text):
            self.demands.append(plain(block.text))
        elif not _BARE_LINK.fullmatch(block.text):
            is_question = block.kind is BlockKind.ITEM and block.text.endswith("?")
            self._add(block, block.text, self._introducer, is_question=is_question)
        if block.kind is BlockKind.ITEM is not following:
            self._introducer = None

    def _prose(self, block: MarkdownBlock, following: BlockKind) -> None:
        self._paragraph += 1
        self._introducer = None
        parts = sentences(block.text)
        for sentence in parts:
            if is_demand(sentence):
                self.demands.append(plain(sentence))
                continue
            is_last = sentence is parts[-1]
            opens_list = is_last and following in _INTRODUCED and sentence[-1] in ":?"
            is_question = is_last and not opens_list and sentence.rstrip('*_»”"')[-1:] == "?"
            before = self._last_statement() if leans_back(sentence) else None
            if self._add(block, sentence, before, introduces=opens_list, is_question=is_question) and opens_list:
                self._introducer = len(self.passages) - 1

    def _last_statement(self) -> int | None:
        part = reversed(self.passages[self._start :])
        return next((each.place for each in part if each.kind in (BlockKind.PROSE, BlockKind.ITEM)), None)

    def _add(self, block: MarkdownBlock, text: str, leans_on: int | None, **traits: bool) -> bool:
        key = statement_key(text)
        is_new = key not in self._known
        if is_new:
            self._known.add(key)
            passage = Passage(
                block.kind,
                text,
                block.level,
                block.marker,
                place=len(self.passages),
                section=len(self.sections) - 1,
                paragraph=self._paragraph,
                leans_on=leans_on,
                **traits,
            )
            self.passages.append(passage)
        return is_new


def _sections(blocks: Sequence[MarkdownBlock]) -> dict[str, list[MarkdownBlock]]:
    """Blocks by heading of the highest level that occurs twice, else of the highest; lesser headings stay inside."""
    levels = Counter(block.level for block in blocks if block.kind is BlockKind.HEADING)
    level = next((level for level in sorted(levels) if levels[level] > 1), min(levels, default=0))
    sections: dict[str, list[MarkdownBlock]] = {"": []}
    heading = ""
    for block in blocks:
        if block.kind is BlockKind.HEADING and block.level <= level:
            heading = plain(block.text)
            sections.setdefault(heading, [])
        else:
            sections[heading].append(block)
    return sections


def _title(blocks: list[MarkdownBlock]) -> tuple[str, list[MarkdownBlock]]:
    """The title and the blocks without it: the one heading of the highest level, else a short first line."""
    levels = [block.level for block in blocks if block.kind is BlockKind.HEADING]
    at = next((at for at, block in enumerate(blocks[:_LATEST_TITLE]) if block.kind is BlockKind.HEADING), None)
    if at is None and not levels and len(blocks) > 1 and blocks[0].kind is BlockKind.PROSE:
        text = blocks[0].text
        at = 0 if len(text) <= _LONGEST_TITLE_CHARS and text[-1] not in ".!?…:;," else None
    elif at is not None and (levels.count(blocks[at].level) > 1 or blocks[at].level > min(levels)):
        at = None
    if at is None:
        return "", blocks
    return _TITLE_LABEL.sub("", plain(blocks[at].text)), blocks[:at] + blocks[at + 1 :]


def _weighted(passages: Sequence[Passage]) -> list[Passage]:
    central = centrality([passage.text for passage in passages])
    highest = max(central, default=0.0) or 1.0
    weighted: list[Passage] = []
    for passage, weight in zip(passages, central, strict=True):
        is_opening = not passage.place or passages[passage.place - 1].section != passage.section
        bonus = _FIGURE_BONUS * any(map(str.isdigit, passage.text)) + _OPENING_BONUS * is_opening
        weighted.append(replace(passage, weight=(weight / highest + bonus) * _KIND_WEIGHTS.get(passage.kind, 1.0)))
    return weighted


def is_demand_heading(heading: str) -> bool:
    """Check whether the section under this heading addresses the writer."""
    return " ".join(words(heading)).lower() in _DEMAND_HEADINGS


def is_demand(sentence: str) -> bool:
    """Check whether a sentence addresses the writer."""
    label = _LABEL.match(sentence)
    bare = sentence.lstrip("*_> ")
    if _ORDER.match(bare) or (label and is_demand_heading(label[1])):
        return True
    return bool(_WISH.match(bare) and _ABOUT_WRITING.search(bare))


def required_length(demands: Iterable[str]) -> tuple[int, int] | None:
    """Least and greatest length in words, from the first demand that names one."""
    for demand in demands:
        if length := _LENGTH.search(demand):
            first, second = (int("".join(filter(str.isdigit, part or "0"))) for part in length.groups())
            return (first, second) if second else (first * 3 // 4, first)
    return None
