"""Whether a pack keeps what has to be kept, claims nothing that was not said (spec 002 F3)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bus_schema.episodes import ColdContent, Decision, Entity, RawTurn, WarmContent
from language.words import stem_key
from memory.packing.decisions import decisions_of
from memory.packing.entities import entities_of
from memory.packing.reading import cut, meant, plain, sentences_of

# A claim is made of the words of what it is from; a summary of many turns has words of its own to join them.
POINT_BORNE = 0.7
SUMMARY_BORNE = 0.6
_FIGURE = re.compile(r"\d+(?:[.,:/]\d+)*")
_LARGE = re.compile(r"(?<![.!?…:;]\s)(?<=[\s(«“\"'/-])[A-ZА-ЯЁ][\w'’.-]*\w|\w*[a-zа-яё][A-ZА-ЯЁ]\w*")
_NEGATION = re.compile(
    r"(?<!\w)(?:not|no|never|nobody|nothing|none|cannot|without|\w+n['’]t|не|нет|ни|никогда|никто|ничего|нельзя|без)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Findings:
    """What a pack lacks of its episode, what it says that its episode does not."""

    missing_entities: tuple[Entity, ...] = ()
    missing_decisions: tuple[Decision, ...] = ()
    invented: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not (self.missing_entities or self.missing_decisions or self.invented)


class Said:
    """The raw text, to be asked whether it bears something out."""

    def __init__(self, turns: Sequence[RawTurn]) -> None:
        self.turns = tuple(turns)
        self._by_id = {turn.raw_log_id: turn for turn in turns}
        self._keys: dict[str, str] = {}

    @cached_property
    def entities(self) -> tuple[Entity, ...]:
        return entities_of(self.turns)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        return decisions_of(self.turns)

    def has(self, words: str, raw_log_ids: Iterable[str] | None = None) -> bool:
        """Whether these words, in whatever case, stand together in one of the turns."""
        wanted = stem_key(words)
        return bool(wanted) and any(f" {wanted} " in self._key(turn) for turn in self._of(raw_log_ids))

    def bears_out(self, claim: str, raw_log_ids: Iterable[str] | None = None, share: float = POINT_BORNE) -> bool:
        """Whether the turns have most words of a claim, all of its figures and names, and deny nothing that it says."""
        if self.has(claim, raw_log_ids):
            return True
        return self.speaks_of(claim, raw_log_ids, share) and not self._denies(claim, self._of(raw_log_ids))

    def speaks_of(self, claim: str, raw_log_ids: Iterable[str] | None = None, share: float = POINT_BORNE) -> bool:
        """Whether the turns have most of its words, all of its figures and names, whatever they say of them."""
        turns = self._of(raw_log_ids)
        words = {word for turn in turns for word in self._key(turn).split()}
        if not turns or not _figures(claim) <= _figures("\n".join(turn.content for turn in turns)):
            return False
        if not all(set(stem_key(name).split()) <= words for name in _LARGE.findall(claim)):
            return False
        wanted = meant(claim)
        # What has no words claims nothing.
        return len(wanted & words) >= share * len(wanted)

    def knows(self, raw_log_ids: Iterable[str]) -> bool:
        """Whether all of these turns belong to the episode."""
        return all(each in self._by_id for each in raw_log_ids)

    def _denies(self, claim: str, turns: Sequence[RawTurn]) -> bool:
        """Whether the sentence that is most like the claim says the contrary."""
        wanted = meant(claim)
        nearest = max(sentences_of(turns), key=lambda each: (len(wanted & each.terms), -each.words), default=None)
        if nearest is None or not wanted or len(wanted & nearest.terms) < POINT_BORNE * len(wanted):
            return False
        return bool(_NEGATION.search(claim)) != bool(_NEGATION.search(nearest.text))

    def _of(self, raw_log_ids: Iterable[str] | None) -> Sequence[RawTurn]:
        if raw_log_ids is None:
            return self.turns
        return [self._by_id[each] for each in raw_log_ids if each in self._by_id]

    def _key(self, turn: RawTurn) -> str:
        if turn.raw_log_id not in self._keys:
            key = stem_key(plain(f"{turn.content} {turn.speaker or ''}"))
            self._keys[turn.raw_log_id] = f" {key} "
        return self._keys[turn.raw_log_id]


def verify(content: WarmContent | ColdContent, turns: Sequence[RawTurn]) -> Findings:
    """Hold a pack against the raw text of its episode."""
    said = Said(turns)
    if isinstance(content, ColdContent):
        return Findings(invented=tuple(invented_in_cold(content, said)))
    return Findings(
        missing_entities=tuple(missing_entities(content, said)),
        missing_decisions=tuple(missing_decisions(content, said)),
        invented=tuple(invented_in_warm(content, said)),
    )


def missing_entities(content: WarmContent, said: Said) -> Iterable[Entity]:
    """Those that the raw text names, the pack has neither in its list nor in a decision."""
    kept = [f" {stem_key(text)} " for text in (*map(_name, content.entities), *map(_text, content.decisions))]
    return (each for each in said.entities if not any(f" {stem_key(each.name)} " in key for key in kept))


def missing_decisions(content: WarmContent, said: Said) -> Iterable[Decision]:
    """Those that the raw text tells of, the pack does not list."""
    kept = [f" {stem_key(decision.text)} " for decision in content.decisions]
    return (each for each in said.decisions if not any(f" {stem_key(each.text)} " in key for key in kept))


def invented_in_warm(content: WarmContent, said: Said) -> Iterable[str]:
    """Whatever the pack says that nobody has said, or not in the turns that it names."""
    for entity in content.entities:
        if not (said.knows(entity.raw_log_ids) and said.has(entity.name, entity.raw_log_ids)):
            yield entity.name
    for decision in content.decisions:
        if not (said.knows(decision.raw_log_ids) and said.has(decision.text, decision.raw_log_ids)):
            yield decision.text
    for point, sources in zip(content.key_points, content.key_point_sources, strict=True):
        if not (said.knows(sources) and said.bears_out(point, sources)):
            yield point
    for sentence in cut(content.summary):
        if not said.bears_out(sentence, share=SUMMARY_BORNE):
            yield sentence


def invented_in_cold(content: ColdContent, said: Said) -> Iterable[str]:
    """A headline that is about something else, a tag of words that nobody has said."""
    # It names what was spoken of, rather than claim anything.
    if not (said.has(content.headline) or said.speaks_of(content.headline, share=SUMMARY_BORNE)):
        yield content.headline
    words = {word for turn in said.turns for word in stem_key(f"{turn.content} {turn.speaker or ''}").split()}
    yield from (tag for tag in content.tags if not set(stem_key(tag).split()) <= words)


def _name(entity: Entity) -> str:
    return entity.name


def _text(decision: Decision) -> str:
    return decision.text


def _figures(text: str) -> set[str]:
    return set(_FIGURE.findall(text))
