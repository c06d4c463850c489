"""A pack, made or mended, then held against what it is of: one that does not hold is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from bus_schema.episodes import ColdContent, RawTurn, WarmContent
from bus_schema.lsm_packing import PackReport
from memory.packing.cold import cold_of
from memory.packing.mending import Mended, mended_cold, mended_warm
from memory.packing.reading import as_turns, cut
from memory.packing.verifying import Findings, verify
from memory.packing.warm import warm_of
from memory.packing.words import words_of, words_said

OFFLINE = "offline-extractive"
ContentT = TypeVar("ContentT", WarmContent, ColdContent)
_NOTHING_TO_SAY = "…"
_MOST_NAMED = 50
_LONGEST_NAMED_CHARS = 200


@dataclass(frozen=True)
class Proposal:
    """What a model would keep; `unfounded` is what it says of turns that there are not."""

    maker: str
    content: WarmContent | ColdContent
    unfounded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pack:
    """What is to be kept, with how it came about."""

    content: WarmContent | ColdContent
    report: PackReport


class PackDoesNotHold(Exception):
    """Not even the pack that is made by rules keeps what it has to; the episode stays as it is."""


def pack_warm(turns: Sequence[RawTurn], proposal: Proposal | None = None) -> Pack:
    """Of the raw text. Raises PackDoesNotHold."""
    before = words_said(turns)
    if proposal and isinstance(proposal.content, WarmContent):
        mended = mended_warm(proposal.content, turns)
        if verify(mended.content, turns).holds:
            return _pack(mended, before, proposal)
    content = _said_alone(warm_of(turns), turns)
    _require(verify(content, turns))
    return _pack(Mended(content), before)


def pack_cold(warm: WarmContent, said: int, proposal: Proposal | None = None) -> Pack:
    """Of a warm content, `said` being the words of its raw text. Raises PackDoesNotHold."""
    before = words_of(warm)
    if proposal and isinstance(proposal.content, ColdContent):
        mended = mended_cold(proposal.content, warm, said)
        if verify(mended.content, as_turns(warm)).holds:
            return _pack(mended, before, proposal)
    content = _said_alone(cold_of(warm, said), as_turns(warm))
    _require(verify(content, as_turns(warm)))
    return _pack(Mended(content), before)


def _said_alone(content: ContentT, turns: Sequence[RawTurn]) -> ContentT:
    """Without what the check takes for invented: of gibberish, pieces may read otherwise than the whole."""
    invented = set(verify(content, turns).invented)
    if not invented:
        return content
    if isinstance(content, ColdContent):
        headline = _NOTHING_TO_SAY if content.headline in invented else content.headline
        tags = tuple(tag for tag in content.tags if tag not in invented)
        return content.model_copy(update={"headline": headline, "tags": tags})
    kept = [each for each in zip(content.key_points, content.key_point_sources, strict=True) if each[0] not in invented]
    summary = " ".join(each for each in cut(content.summary) if each not in invented) or _NOTHING_TO_SAY
    points, sources = tuple(point for point, _ in kept), tuple(source for _, source in kept)
    return content.model_copy(update={"summary": summary, "key_points": points, "key_point_sources": sources})


def _require(findings: Findings) -> None:
    if not findings.holds:
        raise PackDoesNotHold(f"{findings}. {PackDoesNotHold.__doc__}")


def _pack(mended: Mended, before: int, proposal: Proposal | None = None) -> Pack:
    report = PackReport(
        maker=proposal.maker if proposal else OFFLINE,
        words_before=before,
        words_after=words_of(mended.content),
        verified=True,
        put_back=_named(mended.put_back),
        struck_out=_named((*mended.struck_out, *(proposal.unfounded if proposal else ()))),
    )
    return Pack(mended.content, report)


def _named(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(text[:_LONGEST_NAMED_CHARS] for text in texts[:_MOST_NAMED])
