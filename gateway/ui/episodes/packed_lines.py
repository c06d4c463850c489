"""What a layer says of an episode, line by line, each with the turns that it is from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bus_schema.episodes import ColdContent, Decision, Entity, HotContent, WarmContent
from bus_schema.lsm_statistics import ExplainedEpisode

Kind = Literal["headline", "summary", "decision", "point", "entity", "tag"]


@dataclass(frozen=True)
class Line:
    """One thing that was kept; `is_put_back` where the maker of the pack had dropped it."""

    kind: Kind
    text: str
    sources: tuple[str, ...] = ()
    about: str = ""
    is_put_back: bool = False


def lines_of(explained: ExplainedEpisode) -> list[Line]:
    """In the order in which they are shown; of a hot episode, what it names and decides."""
    put_back = {_key(each) for each in explained.report.put_back} if explained.report else set()
    content = explained.episode.content
    if isinstance(content, ColdContent):
        return [Line("headline", content.headline), *(Line("tag", tag) for tag in content.tags)]
    lines: list[Line] = []
    if isinstance(content, WarmContent):
        lines.append(Line("summary", content.summary, is_put_back=_key(content.summary) in put_back))
    lines += _decisions(content.decisions, put_back)
    if isinstance(content, WarmContent):
        lines += _points(content, put_back)
    return [*lines, *_entities(content.entities, put_back)]


def is_whole(explained: ExplainedEpisode) -> bool:
    """Whether nothing is packed."""
    return isinstance(explained.episode.content, HotContent)


def _decisions(decisions: Iterable[Decision], put_back: set[str]) -> Iterator[Line]:
    for each in decisions:
        yield Line("decision", each.text, each.raw_log_ids, is_put_back=_key(each.text) in put_back)


def _points(content: WarmContent, put_back: set[str]) -> Iterator[Line]:
    for text, sources in zip(content.key_points, content.key_point_sources, strict=True):
        yield Line("point", text, sources, is_put_back=_key(text) in put_back)


def _entities(entities: Iterable[Entity], put_back: set[str]) -> Iterator[Line]:
    for each in entities:
        yield Line("entity", each.name, each.raw_log_ids, each.kind, is_put_back=_key(each.name) in put_back)


def _key(text: str) -> str:
    return " ".join(text.casefold().split())
