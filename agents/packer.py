"""Packing of episodes with a language model: hot to warm (summary), warm to cold (headline and tags)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.models.language_model import LanguageModel, try_complete_as
from agents.models.prompt import Material, build_prompt
from bus_schema.episodes import ColdContent, Decision, Entity, Note, NoteKind, RawLogIds, RawTurn, WarmContent
from language.words import language_of

_LONGEST_TAG_WORDS = 3
# What a small model takes in at once, with room for its answer.
_PORTION_WORDS = 1500


class _Read(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReadPoint(_Read):
    """A sentence, or the words of a decision, with the numbers of its turns."""

    text: str
    turns: list[int]


class ReadEntity(_Read):
    """A named entity, with the numbers of the turns that name it."""

    name: str
    kind: Literal["person", "place", "organization", "thing", "date", "amount"]
    turns: list[int]


class ReadNote(_Read):
    """An event, a preference, an instruction or a number that a person told, with the numbers of its turns."""

    kind: NoteKind
    text: str
    turns: list[int]


class ReadWarm(_Read):
    """The model's answer for the warm layer."""

    summary: str
    key_points: list[ReadPoint] = Field(max_length=60)
    entities: list[ReadEntity] = Field(max_length=100)
    decisions: list[ReadPoint] = Field(max_length=40)
    notes: list[ReadNote] = Field(default=[], max_length=60)


class ReadCold(_Read):
    """The model's answer for the cold layer."""

    headline: str
    tags: list[str] = Field(max_length=100)


async def read_cold(warm: WarmContent, words: int, model: LanguageModel) -> ColdContent | None:
    """Headline of about so many words with tags; None where no model helps."""
    kept = Material("summary", "summary", "\n".join(_lines(warm)))
    guide = shipped_guide("packer_cold", language_of(kept.text))
    order = f"Report headline and tags as JSON, the headline in at most {max(4, words * 2 // 3)} words."
    read = await try_complete_as(
        model, build_prompt("memory", "write", guide.system, order, [kept]), ReadCold, guide.model
    )
    if read is None:
        return None
    tags = dict.fromkeys(tag.strip() for tag in read.tags if 0 < len(tag.split()) <= _LONGEST_TAG_WORDS)
    return ColdContent(headline=read.headline.strip(), tags=tuple(tags))


def _lines(warm: WarmContent) -> list[str]:
    names = ", ".join(entity.name for entity in warm.entities)
    decisions = (f"Decided: {decision.text}" for decision in warm.decisions)
    return [warm.summary, *(f"- {point}" for point in warm.key_points), *decisions, f"Named: {names or 'nothing'}"]


class WarmReading(NamedTuple):
    """Warm content and notes by turns of this episode; `unfounded` lists texts that name turns that do not exist."""

    content: WarmContent
    unfounded: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


async def read_warm(turns: Sequence[RawTurn], model: LanguageModel) -> WarmReading | None:
    """None where no model helps: there is none, it is away, or what it answers is not to be understood."""
    gathered = _Gathered()
    for portion in _portions(turns):
        dialogue = Material("dialogue", "dialogue", "\n".join(_line(number, turn) for number, turn in portion))
        guide = shipped_guide("packer_warm", language_of(dialogue.text))
        asked = build_prompt("memory", "write", guide.system, "Pack this dialogue as JSON.", [dialogue])
        read = await try_complete_as(model, asked, ReadWarm, guide.model)
        if read is None:
            return None
        gathered.add(read, {number: turn.raw_log_id for number, turn in portion})
    return gathered.reading()


@dataclass
class _Gathered:
    """The answers to all portions, as one."""

    summary: list[str] = field(default_factory=list)
    points: list[tuple[str, RawLogIds]] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unfounded: list[str] = field(default_factory=list)

    def add(self, read: ReadWarm, ids: dict[int, str]) -> None:
        self.summary.append(read.summary.strip())
        for point in read.key_points:
            if sources := self._sources(point, point.text, ids):
                self.points.append((point.text, sources))
        for entity in read.entities:
            if sources := self._sources(entity, entity.name, ids):
                self.entities.append(Entity(name=entity.name, kind=entity.kind, raw_log_ids=sources))
        for decision in read.decisions:
            if sources := self._sources(decision, decision.text, ids):
                self.decisions.append(Decision(text=decision.text, raw_log_ids=sources))

        for note in read.notes:
            if sources := self._sources(note, note.text, ids):
                self.notes.append(Note(kind=note.kind, text=note.text, raw_log_ids=sources))

    def _sources(self, read: ReadPoint | ReadEntity | ReadNote, text: str, ids: dict[int, str]) -> RawLogIds:
        sources = tuple(dict.fromkeys(ids[number] for number in read.turns if number in ids))
        if not sources or not text.strip():
            self.unfounded.append(text)
            return ()
        return sources

    def reading(self) -> WarmReading:
        content = WarmContent(
            summary=" ".join(filter(None, self.summary)),
            key_points=tuple(text for text, _ in self.points),
            key_point_sources=tuple(sources for _, sources in self.points),
            entities=tuple(self.entities),
            decisions=tuple(self.decisions),
        )
        return WarmReading(content, tuple(self.unfounded), tuple(self.notes))


def _portions(turns: Sequence[RawTurn]) -> Iterator[list[tuple[int, RawTurn]]]:
    portion: list[tuple[int, RawTurn]] = []
    words = 0
    for number, turn in enumerate(turns, 1):
        length = len(turn.content.split())
        if portion and words + length > _PORTION_WORDS:
            yield portion
            portion, words = [], 0
        portion.append((number, turn))
        words += length
    if portion:
        yield portion


def _line(number: int, turn: RawTurn) -> str:
    return f"[{number}] {turn.speaker or turn.role}: {turn.content}"
