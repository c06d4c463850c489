"""From what questions are answered from to what tells whether to dig, without a model: a headline over tags.

Nothing is quoted at length, as a warm episode is: its words are counted, and what it comes back to is named.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from bus_schema.episodes import ColdContent, Entity, WarmContent
from memory.packing.budget import Budget, cold_budget
from memory.packing.cues import without_filler
from memory.packing.reading import cut, key_of, meant
from memory.packing.topics import topics_of
from memory.packing.weighing import clipped
from memory.packing.words import count, words_of

_HEADLINE_WORDS = 16
_HEADLINE_SHARE = 0.6
_NAMING = {"thing": 3, "organization": 3, "place": 2, "person": 2}
_SUBJECTS, _TOPICS = 2, 6


def cold_of(warm: WarmContent, words_said: int) -> ColdContent:
    """One sentence on what it was about, with tags to find it by; as dense as spec 002 NF4 says."""
    budget = cold_budget(words_of(warm), words_said)
    room = max(1, min(_HEADLINE_WORDS, round(budget.wanted * _HEADLINE_SHARE), budget.most))
    headline = _headline(warm, room)
    return ColdContent(headline=headline, tags=tuple(_tags(warm, headline, budget)))


def _headline(warm: WarmContent, room: int) -> str:
    """What was decided, if it can be said so briefly; else who and what it was about."""
    decided = [text for decision in warm.decisions if count(text := without_filler(decision.text)) <= room]
    if decided:
        common = Counter(term for text in _texts(warm) for term in meant(text))
        return max(decided, key=lambda text: (sum(common[term] for term in meant(text)), -count(text)))
    return _about(warm, room) or clipped(warm.summary, room)


def _about(warm: WarmContent, room: int) -> str:
    """Such as: Anna, Phoenix: budget, contractor, launch."""
    whom = [each.name for each in _named(warm)[:_SUBJECTS] if count(each.name) < room]
    whom = whom[:1] if sum(map(count, whom)) >= room else whom
    left = room - sum(map(count, whom))
    what = _topics(warm)[: max(0, min(left, _TOPICS))]
    return ": ".join(", ".join(part) for part in (whom, what) if part) + "." if whom or what else ""


def _topics(warm: WarmContent) -> list[str]:
    named = {key for each in warm.entities for key in key_of(each.name).split()}
    return [topic for topic in topics_of(_texts(warm)) if named.isdisjoint(key_of(topic).split())]


def _texts(warm: WarmContent) -> list[str]:
    return [*cut(warm.summary), *warm.key_points, *(decision.text for decision in warm.decisions)]


def _tags(warm: WarmContent, headline: str, budget: Budget) -> Iterator[str]:
    """Names and topics that the headline does not have already, as many as there are words for."""
    left = budget.wanted - count(headline)
    told = {key_of(headline)}
    for tag in _candidates(warm):
        key = key_of(tag)
        if count(tag) <= left and key and not any(f" {key} " in f" {each} " for each in told):
            told.add(key)
            left -= count(tag)
            yield tag


def _candidates(warm: WarmContent) -> Iterable[str]:
    """Names beside topics, one by one, so that of a few tags neither is all; dates and figures come last."""
    names, topics = [each.name for each in _named(warm)], _topics(warm)
    for at in range(max(len(names), len(topics))):
        yield from names[at : at + 1]
        yield from topics[at : at + 1]
    yield from (each.name for each in warm.entities if each.kind not in _NAMING)


def _named(warm: WarmContent) -> list[Entity]:
    """Those whom or which it is about, rather than when or how much."""
    naming = [each for each in warm.entities if each.kind in _NAMING]
    return sorted(naming, key=lambda each: (-_NAMING[each.kind] * len(each.raw_log_ids), each.name))
