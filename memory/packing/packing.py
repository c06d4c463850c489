"""Packing: a model's proposal, repaired, or else a pack by rules; only verified packs are returned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bus_schema.episodes import ColdContent, Note, RawTurn, WarmContent
from bus_schema.packer import PackReport
from memory.packing.budget import content_words, raw_words
from memory.packing.cold import cold_of
from memory.packing.repair import Repairs, repair_cold, repair_warm
from memory.packing.sentences import split_sentences, turns_of_warm
from memory.packing.verification import SourceText, unfounded_notes, verify
from memory.packing.warm import warm_of
from mindbus.errors import MindBusError

OFFLINE = "offline-extractive"
ContentT = TypeVar("ContentT", WarmContent, ColdContent)
_EMPTY = "…"
_MAX_REPORTED, _MAX_REPORTED_CHARS = 50, 200


@dataclass(frozen=True)
class Proposal:
    """Content and notes that a model proposes; `unfounded` are its statements about turns that do not exist."""

    maker: str
    content: WarmContent | ColdContent
    unfounded: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Pack:
    """Verified content with the report on it, and a model's notes that the turns support."""

    content: WarmContent | ColdContent
    report: PackReport
    notes: tuple[Note, ...] = ()


class PackingFailed(MindBusError):
    """Not even the pack made by rules passes verification; the episode is left as it is."""


def pack_warm(turns: Sequence[RawTurn], proposal: Proposal | None = None) -> Pack:
    """Pack raw turns. Raises PackingFailed."""
    before = raw_words(turns)
    if proposal and isinstance(proposal.content, WarmContent):
        content, repairs = repair_warm(proposal.content, turns)
        if verify(content, turns).holds:
            unfounded = unfounded_notes(proposal.notes, SourceText(turns))
            repairs.struck_out += (note.text for note in unfounded)
            notes = tuple(note for note in proposal.notes if note not in unfounded)
            return replace(_pack(content, before, repairs, proposal), notes=notes)
    return _pack(_verify(warm_of(turns), turns), before)


def pack_cold(warm: WarmContent, raw: int, proposal: Proposal | None = None) -> Pack:
    """Pack warm content of an episode of so many raw words. Raises PackingFailed."""
    before, turns = content_words(warm), turns_of_warm(warm)
    if proposal and isinstance(proposal.content, ColdContent):
        content, repairs = repair_cold(proposal.content, warm, raw)
        if verify(content, turns).holds:
            return _pack(content, before, repairs, proposal)
    return _pack(_verify(cold_of(warm, raw), turns), before)


def _verify(content: ContentT, turns: Sequence[RawTurn]) -> ContentT:
    """Content without what verification takes for invented: clipped gibberish may not match its source."""
    result = verify(content, turns)
    if result.invented:
        content = _without(content, set(result.invented))
        result = verify(content, turns)
    if not result.holds:
        raise PackingFailed(f"{result}. {PackingFailed.__doc__}")
    return content


def _without(content: ContentT, invented: set[str]) -> ContentT:
    if isinstance(content, ColdContent):
        headline = _EMPTY if content.headline in invented else content.headline
        tags = tuple(tag for tag in content.tags if tag not in invented)
        return content.model_copy(update={"headline": headline, "tags": tags})
    supported = [
        pair for pair in zip(content.key_points, content.key_point_sources, strict=True) if pair[0] not in invented
    ]
    summary = " ".join(sentence for sentence in split_sentences(content.summary) if sentence not in invented) or _EMPTY
    points, sources = tuple(point for point, _ in supported), tuple(source for _, source in supported)
    return content.model_copy(update={"summary": summary, "key_points": points, "key_point_sources": sources})


def _pack(
    content: WarmContent | ColdContent, before: int, repairs: Repairs | None = None, proposal: Proposal | None = None
) -> Pack:
    put_back, struck_out = (repairs.put_back, repairs.struck_out) if repairs else ([], [])
    report = PackReport(
        maker=proposal.maker if proposal else OFFLINE,
        words_before=before,
        words_after=content_words(content),
        verified=True,
        put_back=_shortened(put_back),
        struck_out=_shortened((*struck_out, *(proposal.unfounded if proposal else ()))),
    )
    return Pack(content, report)


def _shortened(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(text[:_MAX_REPORTED_CHARS] for text in texts[:_MAX_REPORTED])
