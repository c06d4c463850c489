"""Takes material apart into passages."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agents.keywords import centrality
from agents.models.extractive.demands import is_demand, is_demanding, is_labelled
from agents.models.extractive.source import Passage, Source
from agents.models.extractive.statements import wording
from agents.models.extractive.themes import Theme, outline
from language.markdown import Block, Kind, parse, plain
from language.sentences import leans_back, sentences
from language.words import first_words, language_of

_TITLE_LABEL = re.compile(r"^(?:brief|article brief|topic|бриф|задание|тема)\s*[:.—–-]\s*", re.IGNORECASE)
_BARE_LINK = re.compile(r"!?\[[^\]]*\]\([^)]*\)|<?https?://\S+>?")
_INTRODUCED = frozenset({Kind.ITEM, Kind.TABLE, Kind.CODE, Kind.QUOTE})
_TOLD = frozenset({Kind.PROSE, Kind.ITEM})
_LATEST_TITLE = 3
_LONGEST_TITLE_CHARS = 90
_LONGEST_TITLE_WORDS = 9
# Many words make tables and listings look central, which they are not to a reader.
_KIND_WEIGHTS = {Kind.TABLE: 0.6, Kind.CODE: 0.3}
_FIGURE_BONUS, _NAME_BONUS, _OPENING_BONUS = 0.15, 0.1, 0.25


def read_source(texts: Sequence[str]) -> Source:
    """Take the material apart; what it asks of the writer is kept apart from what it tells."""
    title, blocks = _title([block for text in texts for block in parse(text)])
    themes, blocks_by_theme = outline(blocks)
    reading = _Reading()
    for theme, members in zip(themes, blocks_by_theme, strict=True):
        reading.read(theme, members, is_head=len(themes) > 1 and not theme.heading)
    return Source(
        language=language_of("\n".join(block.text for block in blocks) or title),
        title=title or _made_title(reading.passages),
        themes=tuple(reading.themes),
        passages=tuple(_weighed(reading.passages)),
        demands=tuple(reading.demands),
    )


class _Reading:
    """Collects passages; each text is kept once, however often the material repeats it."""

    def __init__(self) -> None:
        self.themes: list[Theme] = []
        self.passages: list[Passage] = []
        self.demands: list[str] = []
        self._seen: set[str] = set()
        self._paragraph = 0
        self._start = 0  # nothing leans on what stands before this place
        self._introducer: int | None = None
        self._demands_list = False

    def read(self, theme: Theme, blocks: Sequence[Block], is_head: bool) -> None:
        if is_demanding(theme.heading):
            self.demands.extend(plain(block.text) for block in blocks if block.kind is not Kind.HEADING)
            return
        before = len(self.passages)
        self.themes.append(theme)
        self._part()
        for at, block in enumerate(blocks):
            if at and block.kind is not blocks[at - 1].kind is Kind.ITEM:
                self._introducer, self._demands_list = None, False
            following = blocks[at + 1].kind if at + 1 < len(blocks) else Kind.PROSE
            self._block(block, following, is_head)
        if len(self.passages) == before:
            self.themes.pop()

    def _block(self, block: Block, following: Kind, is_head: bool) -> None:
        if block.kind in (Kind.HEADING, Kind.RULE):
            self._part()
        elif block.kind is Kind.PROSE and not (is_head and is_labelled(block.text)):
            self._prose(block, following)
        elif block.kind in (Kind.PROSE, Kind.ITEM) and self._is_demand(block, is_head):
            self.demands.append(plain(block.text))
        elif not _BARE_LINK.fullmatch(block.text):
            self._add(block, block.text, leans_on=self._below(block))

    def _is_demand(self, block: Block, is_head: bool) -> bool:
        return self._demands_list or is_demand(block.text) or (is_head and is_labelled(block.text))

    def _part(self) -> None:
        self._start = len(self.passages)
        self._introducer, self._demands_list = None, False

    def _prose(self, block: Block, following: Kind) -> None:
        self._paragraph += 1
        self._introducer, self._demands_list = None, False
        found = sentences(block.text)
        for at, sentence in enumerate(found):
            is_last = at == len(found) - 1
            opens_list = is_last and following in _INTRODUCED and sentence[-1] in ":?"
            if is_demand(sentence):
                self.demands.append(plain(sentence))
                self._demands_list = opens_list
                continue
            asks = is_last and sentence.rstrip('*_»”"')[-1:] == "?" and not opens_list
            added = self._add(
                block, sentence, leans_on=self._previous(sentence), introduces=opens_list, is_question=asks
            )
            if added and opens_list:
                self._introducer = added.place

    def _previous(self, sentence: str) -> int | None:
        if not leans_back(sentence):
            return None
        told = (each.place for each in reversed(self.passages[self._start :]) if each.kind in _TOLD)
        return next(told, None)

    def _below(self, block: Block) -> int | None:
        """What an item, a table or a listing hangs from."""
        for passage in reversed(self.passages[self._start :]):
            if passage.kind is not Kind.ITEM or block.kind is not Kind.ITEM:
                break
            if passage.level < block.level or (passage.level == block.level and block.marker[0:1].isdigit()):
                return passage.place
        return self._introducer

    def _add(
        self, block: Block, text: str, *, leans_on: int | None, introduces: bool = False, is_question: bool = False
    ) -> Passage | None:
        key = wording(text)
        if key in self._seen:
            return None
        self._seen.add(key)
        passage = Passage(
            place=len(self.passages),
            text=text,
            kind=block.kind,
            theme=len(self.themes) - 1,
            paragraph=self._paragraph,
            level=block.level,
            marker=block.marker,
            leans_on=leans_on,
            introduces=introduces,
            is_question=is_question or (block.kind is Kind.ITEM and text.endswith("?")),
        )
        self.passages.append(passage)
        return passage


def _title(blocks: list[Block]) -> tuple[str, list[Block]]:
    levels = [block.level for block in blocks if block.kind is Kind.HEADING]
    at = next((at for at, block in enumerate(blocks[:_LATEST_TITLE]) if block.kind is Kind.HEADING), None)
    if at is not None and levels.count(blocks[at].level) == 1 and blocks[at].level == min(levels):
        return _named(blocks[at]), [*blocks[:at], *blocks[at + 1 :]]
    if not levels and len(blocks) > 1 and blocks[0].kind is Kind.PROSE and _looks_like_title(blocks[0].text):
        return _named(blocks[0]), blocks[1:]
    return "", blocks


def _named(block: Block) -> str:
    return _TITLE_LABEL.sub("", plain(block.text))


def _looks_like_title(text: str) -> bool:
    return len(text) <= _LONGEST_TITLE_CHARS and text[-1] not in ".!?…:;,"


def _made_title(passages: Sequence[Passage]) -> str:
    """A text without a title mostly says in its first sentence what it is about."""
    opening = next((plain(passage.text) for passage in passages if passage.kind in (Kind.PROSE, Kind.ITEM)), "")
    return first_words(opening, _LONGEST_TITLE_WORDS).rstrip(".")


def _weighed(passages: Sequence[Passage]) -> list[Passage]:
    central = centrality([passage.text for passage in passages])
    highest = max(central, default=0.0) or 1.0
    weighed: list[Passage] = []
    for passage, weight in zip(passages, central, strict=True):
        is_opening = not passage.place or passages[passage.place - 1].theme != passage.theme
        bonus = _FIGURE_BONUS * passage.has_figure + _NAME_BONUS * passage.has_name + _OPENING_BONUS * is_opening
        weighed.append(replace(passage, weight=(weight / highest + bonus) * _KIND_WEIGHTS.get(passage.kind, 1.0)))
    return weighed
