"""Headline of an episode: the sentence of its warm pack that says most of its result."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from bus_schema.episodes import WarmContent
from language.words import small_talk_stems, stem_key
from memory.packing.budget import count_words
from memory.packing.decisions import is_decision
from memory.packing.scoring import is_small_talk
from memory.packing.self_contained import self_containedness, without_lead_in
from memory.packing.sentences import is_question, meaningful_stems, split_sentences

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
        whole = _without_lead_in(text)
        forms = [whole] if count_words(whole) <= room else _main_clauses(whole)
        rated += (
            (factor * rating.of(form), form) for form in forms if count_words(form) <= room and _is_meaningful(form)
        )
    # Of equal ones the later: results come at the end.
    return max(reversed(rated), key=lambda each: each[0])[1] if rated else None


def speakers_of(warm: WarmContent) -> set[str]:
    """Stems of the names that key points begin with."""
    return {key for point in warm.key_points if (who := _SPEAKER.match(point)) for key in stem_key(who[1]).split()}


class _Rating:
    """Scores sentences by the terms and names that they share with the rest of the pack."""

    def __init__(self, warm: WarmContent) -> None:
        texts = [*split_sentences(warm.summary), *warm.key_points, *(decision.text for decision in warm.decisions)]
        self._speakers = speakers_of(warm)
        self._frequencies = Counter(term for text in texts for term in meaningful_stems(text) - self._speakers)
        names = {stem_key(each.name): len(each.raw_log_ids) for each in warm.entities}
        # Speakers are named all the time.
        self._names = {name: turns for name, turns in names.items() if not set(name.split()) <= self._speakers}

    def of(self, text: str) -> float:
        bare = _SPEAKER.sub("", text)
        terms, key = meaningful_stems(bare) - self._speakers, f" {stem_key(bare)} "
        # fsum: a plain sum over a set depends on its order, which differs between processes.
        centrality = math.fsum(math.log1p(self._frequencies[term]) * _term_weight(term) for term in terms)
        score = centrality / math.sqrt(max(len(terms), _MIN_NORM_TERMS))
        score += _NAME_BONUS * math.fsum(math.log1p(n) for name, n in self._names.items() if f" {name} " in key)
        return score * self_containedness(bare) * (_CLAUSES if text.endswith("…") else 1.0)


def _term_weight(term: str) -> float:
    return _SMALL_TALK_WEIGHT if term in small_talk_stems() else 1.0


def _candidates(warm: WarmContent) -> Iterator[tuple[str, float]]:
    """All sentences of the pack with their factors.

    A question in the summary is the subject; among the points it only led to something.
    """
    for text in split_sentences(warm.summary):
        yield text, _SUMMARY * (_CLIPPED_SUMMARY if text.endswith("…") else 1.0)
    for text in warm.key_points:
        yield text, (_QUESTION if is_question(text) else 1.0)
    yield from ((each.text, _DECISION if is_decision(each.text) else 1.0) for each in warm.decisions)


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
