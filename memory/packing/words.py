"""How many words there are: what compression is measured in."""

from collections.abc import Iterable, Iterator

from bus_schema.episodes import ColdContent, Content, HotContent, RawTurn, WarmContent


def count(text: str) -> int:
    """What stands between white space."""
    return len(text.split())


def words_said(turns: Iterable[RawTurn]) -> int:
    """Those of the raw text: what was said, without who said it or when."""
    return sum(count(turn.content) for turn in turns)


def words_of(content: Content) -> int:
    """All words that a layer keeps, each time that they stand there; ids, kinds and vectors are no words."""
    return sum(map(count, texts_of(content)))


def texts_of(content: Content) -> Iterator[str]:
    """Every text that a layer keeps."""
    match content:
        case HotContent():
            yield from (turn.content for turn in content.raw_messages)
        case WarmContent():
            yield content.summary
            yield from content.key_points
            yield from (entity.name for entity in content.entities)
            yield from (decision.text for decision in content.decisions)
        case ColdContent():
            yield content.headline
            yield from content.tags
