"""From what questions are answered from to what tells whether to dig, without a model: one sentence, with tags.

Of a warm episode many sentences are left, of a cold one the one that says what it came to; the rest is names.
"""

from collections.abc import Iterator, Sequence

from bus_schema.episodes import ColdContent, Entity, WarmContent
from language.words import stem_key
from memory.packing.budget import Budget, cold_budget
from memory.packing.headlines import headline_of, speakers_of
from memory.packing.reading import cut
from memory.packing.topics import topics_of
from memory.packing.weighing import clipped
from memory.packing.words import count, words_of

_HEADLINE_WORDS = 30
_HEADLINE_SHARE = 0.6
_NAMING = {"thing": 3, "organization": 3, "place": 2, "person": 2}
_SUBJECTS, _TOPICS = 2, 6


def cold_of(warm: WarmContent, words_said: int) -> ColdContent:
    """One sentence on what it came to, with tags to find it by; as dense as spec 002 NF4 says."""
    budget = cold_budget(words_of(warm), words_said)
    headline = _headline(warm, budget)
    return ColdContent(headline=headline, tags=tuple(_tags(warm, headline, budget)))


def _headline(warm: WarmContent, budget: Budget) -> str:
    """A sentence, if any that is so brief tells something; else who and what it was about."""
    for room in (budget.wanted, budget.most):
        if headline := headline_of(warm, min(_HEADLINE_WORDS, room)):
            return headline
    if count(warm.summary) <= budget.wanted:
        return warm.summary
    room = max(1, min(_HEADLINE_WORDS, round(budget.wanted * _HEADLINE_SHARE)))
    return _about(warm, room) or clipped(warm.summary, room)


def _about(warm: WarmContent, room: int) -> str:
    """Such as: Anna, Phoenix: budget, contractor, launch."""
    whom = [each.name for each in _named(warm)[:_SUBJECTS] if count(each.name) < room]
    whom = whom[:1] if sum(map(count, whom)) >= room else whom
    left = room - sum(map(count, whom))
    what = _topics(warm)[: max(0, min(left, _TOPICS))]
    return ": ".join(", ".join(part) for part in (whom, what) if part) + "." if whom or what else ""


def _topics(warm: WarmContent, fewest_texts: int = 1) -> list[str]:
    named = speakers_of(warm) | {key for each in warm.entities for key in stem_key(each.name).split()}
    texts = [*cut(warm.summary), *warm.key_points, *(decision.text for decision in warm.decisions)]
    return [topic for topic in topics_of(texts, fewest_texts) if named.isdisjoint(stem_key(topic).split())]


def _tags(warm: WarmContent, headline: str, budget: Budget) -> Iterator[str]:
    """What the headline does not have already: names and what it comes back to, as many as there are words for.

    Words that are said once are tags only where all else is less than there has to be.
    """
    words, told = count(headline), {stem_key(headline)}
    for tags, room in ((_telling(warm), budget.wanted), (_topics(warm), budget.least)):
        for tag in tags:
            key = stem_key(tag)
            if words + count(tag) <= room and key and not any(f" {key} " in f" {each} " for each in told):
                told.add(key)
                words += count(tag)
                yield tag


def _telling(warm: WarmContent) -> Sequence[str]:
    """Names beside topics, one by one, so that of a few tags neither is all; dates and figures come last."""
    names, topics = [each.name for each in _named(warm)], _topics(warm, fewest_texts=2)
    mixed = (each[at] for at in range(max(len(names), len(topics))) for each in (names, topics) if at < len(each))
    return (*mixed, *(each.name for each in warm.entities if each.kind not in _NAMING))


def _named(warm: WarmContent) -> list[Entity]:
    """Those whom or which it is about, rather than when or how much."""
    naming = [each for each in warm.entities if each.kind in _NAMING]
    return sorted(naming, key=lambda each: (-_NAMING[each.kind] * len(each.raw_log_ids), each.name))
