"""Cold content by rules: the headline of a warm pack, with tags to find it by."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from bus_schema.episodes import ColdContent, Entity, WarmContent
from language.word_lists import SMALL_TALK
from language.words import stem_key
from memory.packing.budget import WordBudget, cold_budget, content_words, count_words
from memory.packing.headlines import best_headline, speakers_of
from memory.packing.scoring import clipped
from memory.packing.sentences import meaningful_stems, split_sentences

_MAX_HEADLINE_WORDS = 30
# Share of the budget for a headline of names and topics; the rest is for tags.
_HEADLINE_SHARE = 0.6
# Weight of an entity's mentions by its kind; other kinds are figures and dates.
_NAMING = {"thing": 3, "organization": 3, "place": 2, "person": 2}
_MAX_SUBJECTS, _MAX_TOPICS = 2, 6
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?!['’\w])")
_VERB = re.compile(r"(?:ly|ing|ed|ть|ться|тся|л[аои]|ешь|[ие]шь|[ую]т|[ия]т|[ие]м|ся|но)$")
_MIN_TOPIC_CHARS = 4


def cold_of(warm: WarmContent, raw: int) -> ColdContent:
    """Cold content within the budget of spec 002 NF4 for an episode of so many raw words."""
    budget = cold_budget(content_words(warm), raw)
    headline = _headline(warm, budget)
    return ColdContent(headline=headline, tags=tuple(_tags(warm, headline, budget)))


def topics_of(texts: Sequence[str], min_count: int = 1) -> list[str]:
    """Meaningful words that occur at least so often, by descending count, nouns before verbs, longer ones first."""
    counts: Counter[str] = Counter()
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        stems = meaningful_stems(text)
        for word in _WORD.findall(text):
            if len(word) >= _MIN_TOPIC_CHARS and word.lower() not in SMALL_TALK and meaningful_stems(word) <= stems:
                key = stem_key(word)
                counts[key] += 1
                forms[key][word.lower()] += 1
    frequent = [key for key in counts if counts[key] >= min_count]
    ranked = sorted(frequent, key=lambda key: (-_topic_weight(key, counts[key], forms[key]), key))
    return [_commonest(forms[key]) for key in ranked]


def _headline(warm: WarmContent, budget: WordBudget) -> str:
    """A sentence if one fits, else names and topics."""
    for room in (budget.wanted, budget.most):
        if headline := best_headline(warm, min(_MAX_HEADLINE_WORDS, room)):
            return headline
    if count_words(warm.summary) <= budget.wanted:
        return warm.summary
    room = max(1, min(_MAX_HEADLINE_WORDS, round(budget.wanted * _HEADLINE_SHARE)))
    return _names_and_topics(warm, room) or clipped(warm.summary, room)


def _names_and_topics(warm: WarmContent, room: int) -> str:
    """Such as: Anna, Phoenix: budget, contractor, launch."""
    names = [each.name for each in _named(warm)[:_MAX_SUBJECTS] if count_words(each.name) < room]
    names = names[:1] if sum(map(count_words, names)) >= room else names
    left = room - sum(map(count_words, names))
    topics = _topics(warm)[: max(0, min(left, _MAX_TOPICS))]
    return ": ".join(", ".join(part) for part in (names, topics) if part) + "." if names or topics else ""


def _topics(warm: WarmContent, min_count: int = 1) -> list[str]:
    named = speakers_of(warm) | {key for each in warm.entities for key in stem_key(each.name).split()}
    texts = [*split_sentences(warm.summary), *warm.key_points, *(decision.text for decision in warm.decisions)]
    return [topic for topic in topics_of(texts, min_count) if named.isdisjoint(stem_key(topic).split())]


def _tags(warm: WarmContent, headline: str, budget: WordBudget) -> Iterator[str]:
    """Names and recurring topics that the headline lacks, up to the intended words; any topics up to the least."""
    words, known = count_words(headline), {stem_key(headline)}
    for tags, room in ((_ranked_tags(warm), budget.wanted), (_topics(warm), budget.least)):
        for tag in tags:
            key = stem_key(tag)
            if words + count_words(tag) <= room and key and not any(f" {key} " in f" {each} " for each in known):
                known.add(key)
                words += count_words(tag)
                yield tag


def _ranked_tags(warm: WarmContent) -> Sequence[str]:
    """Names alternating with recurring topics, then dates and figures."""
    names, topics = [each.name for each in _named(warm)], _topics(warm, min_count=2)
    mixed = (each[at] for at in range(max(len(names), len(topics))) for each in (names, topics) if at < len(each))
    return (*mixed, *(each.name for each in warm.entities if each.kind not in _NAMING))


def _named(warm: WarmContent) -> list[Entity]:
    """Names by descending weighted number of mentions."""
    naming = [each for each in warm.entities if each.kind in _NAMING]
    return sorted(naming, key=lambda each: (-_NAMING[each.kind] * len(each.raw_log_ids), each.name))


def _commonest(forms: Counter[str]) -> str:
    return max(forms, key=lambda form: (forms[form], -len(form), form))


def _topic_weight(key: str, count: int, forms: Counter[str]) -> float:
    is_verb = all(_VERB.search(form) for form in forms)
    return (count + len(key) / 20) * (0.5 if is_verb else 1.0)
