"""Cold content by rules: the headline of a warm pack, with tags to find it by."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from bus_schema.episodes import ColdContent, Decision, Entity, WarmContent
from language.word_lists import SMALL_TALK
from language.words import small_talk_stems, stem_key
from memory.packing.budget import WordBudget, cold_budget, content_words, count_words
from memory.packing.decisions import is_decision
from memory.packing.sentences import (
    clipped,
    is_question,
    is_small_talk,
    meaningful_stems,
    self_containedness,
    split_sentences,
    without_lead_in,
)

# Shorter sentences say nothing.
_MIN_TERMS, _MIN_WORDS = 2, 3
# Lower bound of the length normalisation: short sentences would win by density alone.
_MIN_NORM_TERMS = 8
_NAME_BONUS = 0.7
# Factors by the origin of a sentence, and for questions and for texts that were cut off.
_DECISION, _SUMMARY, _QUESTION, _CLAUSES, _CLIPPED_SUMMARY = 3.0, 1.3, 0.3, 0.8, 0.4
_SMALL_TALK_WEIGHT = 0.3
_SPEAKER = re.compile(r"^([^\s:][^:.!?]{0,40}): ")
_CLAUSE_END = re.compile(r"[,;:](?=\s)|(?=\s[—–-]\s)")
_SUBORDINATE = re.compile(
    r"^(?:\w+ )?(?:if|when|while|although|though|because|since|after|before|unless|as|once|until|"
    r"если|когда|пока|хотя|поскольку|раз|чтобы|после|как|так как|потому)\b",
    re.IGNORECASE,
)


def best_headline(warm: WarmContent, room: int) -> str | None:
    """Best sentence of at most so many words, or its main clauses; None if there is none."""
    rating = _Rating(warm)
    rated: list[tuple[float, str]] = []
    for text, factor in _candidates(warm):
        full_text = _without_lead_in(text)
        forms = [full_text] if count_words(full_text) <= room else _main_clauses(full_text)
        rated += (
            (factor * rating.of(form), form) for form in forms if count_words(form) <= room and _is_meaningful(form)
        )
    # Of equal ones the later: results come at the end.
    return max(reversed(rated), key=lambda candidate: candidate[0])[1] if rated else None


def speakers_of(warm: WarmContent) -> set[str]:
    """Stems of the names that key points begin with."""
    return {key for point in warm.key_points if (who := _SPEAKER.match(point)) for key in stem_key(who[1]).split()}


class _Rating:
    """Scores sentences by the terms and names that they share with the rest of the pack."""

    def __init__(self, warm: WarmContent) -> None:
        texts = [*split_sentences(warm.summary), *warm.key_points, *(decision.text for decision in warm.decisions)]
        self._speakers = speakers_of(warm)
        self._frequencies = Counter(term for text in texts for term in meaningful_stems(text) - self._speakers)
        names = {stem_key(entity.name): len(entity.raw_log_ids) for entity in warm.entities}
        # Speakers are named all the time.
        self._names = {name: turns for name, turns in names.items() if not set(name.split()) <= self._speakers}

    def of(self, text: str) -> float:
        bare = _SPEAKER.sub("", text)
        terms, key = meaningful_stems(bare) - self._speakers, f" {stem_key(bare)} "
        # fsum: a plain sum over a set depends on its order, which differs between processes.
        weights = {term: _SMALL_TALK_WEIGHT if term in small_talk_stems() else 1.0 for term in terms}
        centrality = math.fsum(math.log1p(self._frequencies[term]) * weight for term, weight in weights.items())
        score = centrality / math.sqrt(max(len(terms), _MIN_NORM_TERMS))
        score += _NAME_BONUS * math.fsum(math.log1p(n) for name, n in self._names.items() if f" {name} " in key)
        return score * self_containedness(bare) * (_CLAUSES if text.endswith("…") else 1.0)


def _candidates(warm: WarmContent) -> Iterator[tuple[str, float]]:
    """All sentences of the pack with their factors.

    A question in the summary is the subject; among the points it only led to something.
    """
    for text in split_sentences(warm.summary):
        yield text, _SUMMARY * (_CLIPPED_SUMMARY if text.endswith("…") else 1.0)
    for text in warm.key_points:
        yield text, (_QUESTION if is_question(text) else 1.0)
    for decision in warm.decisions:
        for text in split_sentences(decision.text):
            yield text, (_DECISION if is_decision(text) else _QUESTION if is_question(text) else 1.0)


def _without_lead_in(text: str) -> str:
    speaker = _SPEAKER.match(text)
    return f"{speaker[0]}{without_lead_in(text[speaker.end() :])}" if speaker else without_lead_in(text)


def _main_clauses(sentence: str) -> list[str]:
    """All beginnings of a sentence that end with a clause; none where it begins with a subordinate one."""
    if _SUBORDINATE.match(_SPEAKER.sub("", sentence)):
        return []
    return [f"{sentence[: end.start()]}…" for end in _CLAUSE_END.finditer(sentence)]


def _is_meaningful(text: str) -> bool:
    bare = _SPEAKER.sub("", text)
    return len(meaningful_stems(bare)) >= _MIN_TERMS and count_words(bare) >= _MIN_WORDS and not is_small_talk(bare)


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
    headline = _headline(standing(warm), budget) or _headline(warm, budget)
    return ColdContent(headline=headline, tags=tuple(_tags(warm, headline, budget)))


def standing(warm: WarmContent) -> WarmContent:
    """The content without decisions that were superseded, nor sentences that state them, nor beginnings of these."""
    superseded = [each for each in warm.decisions if each.superseded_by]
    decided = tuple(each for each in warm.decisions if not each.superseded_by)
    # Few words, such as "Let's take Friday.", may have been said of another decision as well.
    still_stated = {stem_key(text) for each in decided for text in split_sentences(each.text)}
    outdated = {f"{key} " for key in map(stem_key, _statements(superseded)) if key and key not in still_stated}

    def stands(text: str) -> bool:
        key = f"{stem_key(_SPEAKER.sub('', text))} "
        is_stated = any(key == each or (text.endswith("…") and each.startswith(key)) for each in outdated)
        return not is_stated

    points = [pair for pair in zip(warm.key_points, warm.key_point_sources, strict=True) if stands(pair[0])]
    return warm.model_copy(
        update={
            "summary": " ".join(filter(stands, split_sentences(warm.summary))),
            "key_points": tuple(point for point, _sources in points),
            "key_point_sources": tuple(sources for _point, sources in points),
            "decisions": decided,
        }
    )


def _statements(decisions: Sequence[Decision]) -> Iterator[str]:
    """Sentences that state them, as opposed to their context; one that is all of a decision states it."""
    for each in decisions:
        sentences = list(split_sentences(each.text))
        yield from (text for text in sentences if len(sentences) == 1 or is_decision(text))


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
    names = [entity.name for entity in _name_entities(warm)[:_MAX_SUBJECTS] if count_words(entity.name) < room]
    names = names[:1] if sum(map(count_words, names)) >= room else names
    words_left = room - sum(map(count_words, names))
    topics = _topics(warm)[: max(0, min(words_left, _MAX_TOPICS))]
    return ": ".join(", ".join(part) for part in (names, topics) if part) + "." if names or topics else ""


def _topics(warm: WarmContent, min_count: int = 1) -> list[str]:
    named = speakers_of(warm) | {key for entity in warm.entities for key in stem_key(entity.name).split()}
    texts = [*split_sentences(warm.summary), *warm.key_points, *(decision.text for decision in warm.decisions)]
    return [topic for topic in topics_of(texts, min_count) if named.isdisjoint(stem_key(topic).split())]


def _tags(warm: WarmContent, headline: str, budget: WordBudget) -> Iterator[str]:
    """Names and recurring topics that the headline lacks, up to the intended words; any topics up to the least."""
    words, keys = count_words(headline), {stem_key(headline)}
    for tags, room in ((_ranked_tags(warm), budget.wanted), (_topics(warm), budget.least)):
        for tag in tags:
            key = stem_key(tag)
            if words + count_words(tag) <= room and key and not any(f" {key} " in f" {known} " for known in keys):
                keys.add(key)
                words += count_words(tag)
                yield tag


def _ranked_tags(warm: WarmContent) -> Sequence[str]:
    """Names alternating with recurring topics, then dates and figures."""
    names, topics = [entity.name for entity in _name_entities(warm)], _topics(warm, min_count=2)
    mixed = (
        ranking[at] for at in range(max(len(names), len(topics))) for ranking in (names, topics) if at < len(ranking)
    )
    return (*mixed, *(entity.name for entity in warm.entities if entity.kind not in _NAMING))


def _name_entities(warm: WarmContent) -> list[Entity]:
    """Names by descending weighted number of mentions."""
    naming = [entity for entity in warm.entities if entity.kind in _NAMING]
    return sorted(naming, key=lambda entity: (-_NAMING[entity.kind] * len(entity.raw_log_ids), entity.name))


def _commonest(forms: Counter[str]) -> str:
    return max(forms, key=lambda form: (forms[form], -len(form), form))


def _topic_weight(key: str, count: int, forms: Counter[str]) -> float:
    is_verb = all(_VERB.search(form) for form in forms)
    return (count + len(key) / 20) * (0.5 if is_verb else 1.0)
