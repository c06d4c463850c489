"""Summarises raw text, so that questions can be answered from what is left of it (hot to warm)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agents.guides import shipped_guide
from agents.models.language_model import LanguageModel
from agents.models.prompt import Material, lay_out
from agents.models.structured import attempt_as
from agents.packer.reading import ReadEntity, ReadPoint, ReadWarm
from bus_schema.episodes import Decision, Entity, RawLogIds, RawTurn, WarmContent

# What a small model takes in at once, with room for its answer.
_PORTION_WORDS = 1500


@dataclass
class WarmReading:
    """What the model would keep, by turns of this episode; `unfounded` names turns that there are not."""

    content: WarmContent
    unfounded: tuple[str, ...] = ()


async def read_warm(turns: Sequence[RawTurn], model: LanguageModel) -> WarmReading | None:
    """None where no model helps: there is none, it is away, or what it answers is not to be understood."""
    gathered = _Gathered()
    for portion in _portions(turns):
        guide = shipped_guide("packer_warm")
        dialogue = Material("dialogue", "dialogue", "\n".join(_line(number, turn) for number, turn in portion))
        asked = lay_out("memory", "write", guide.system, "Pack this dialogue as JSON.", [dialogue])
        read = await attempt_as(model, asked, ReadWarm, guide.model)
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

    def _sources(self, read: ReadPoint | ReadEntity, text: str, ids: dict[int, str]) -> RawLogIds:
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
        return WarmReading(content, tuple(self.unfounded))


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
