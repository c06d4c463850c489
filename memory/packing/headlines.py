"""The one sentence that says what an episode came to: of its own, whole, rather than words strung together."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from bus_schema.episodes import WarmContent
from language.words import small_talk_stems, stem_key
from memory.packing.decisions import decides
from memory.packing.reading import cut, meant
from memory.packing.standing_alone import understood, without_lead
from memory.packing.weighing import is_small_talk
from memory.packing.words import count

# Of fewer words no sentence tells anything.
_FEWEST_TERMS, _FEWEST_WORDS = 2, 3
# Short sentences would win on density alone.
_SHORTEST_COUNTED_TERMS = 8
_OF_A_NAME, _OF_A_DECISION, _OF_A_SUMMARY = 0.7, 3.0, 1.3
_OF_A_QUESTION, _OF_A_PART, _OF_A_FRAGMENT, _OF_CHATTER = 0.3, 0.8, 0.4, 0.3
_SPEAKER = re.compile(r"^([^\s:][^:.!?]{0,40}): ")
_CLAUSE = re.compile(r"[,;:](?=\s)|(?=\s[—–-]\s)")
# What one of these begins is no clause to stand alone.
_SUBORDINATE = re.compile(
    r"^(?:\w+ )?(?:if|when|while|although|though|because|since|after|before|unless|as|once|until|"
    r"если|когда|пока|хотя|поскольку|раз|чтобы|после|как|так как|потому)\b",
    re.IGNORECASE,
)


def headline_of(warm: WarmContent, room: int) -> str | None:
    """In at most so many words; a decision rather than anything else, main clauses where a sentence has too many."""
    rating = _Rating(warm)
    rated: list[tuple[float, str]] = []
    for text, share in _candidates(warm):
        whole = _whole(text)
        forms = [whole] if count(whole) <= room else _main_clauses(whole)
        rated += ((share * rating.of(form), form) for form in forms if count(form) <= room and _tells(form))
    # Of two that are worth the same, the later one is what it came to.
    return max(reversed(rated), key=lambda each: each[0])[1] if rated else None


def speakers_of(warm: WarmContent) -> set[str]:
    """The stems of whoever a point says to have said it."""
    return {key for point in warm.key_points if (who := _SPEAKER.match(point)) for key in stem_key(who[1]).split()}


class _Rating:
    """What a sentence is worth as the only one that is left."""

    def __init__(self, warm: WarmContent) -> None:
        texts = [*cut(warm.summary), *warm.key_points, *(decision.text for decision in warm.decisions)]
        self._speakers = speakers_of(warm)
        self._shared = Counter(term for text in texts for term in meant(text) - self._speakers)
        names = {stem_key(each.name): len(each.raw_log_ids) for each in warm.entities}
        # Whoever takes part is named all the time, which tells nothing.
        self._names = {name: turns for name, turns in names.items() if not set(name.split()) <= self._speakers}

    def of(self, text: str) -> float:
        """How much of the episode it tells, less if it cannot be understood by itself."""
        bare = _SPEAKER.sub("", text)
        terms, key = meant(bare) - self._speakers, f" {stem_key(bare)} "
        # fsum: a plain sum over a set depends on the order, which differs from process to process.
        told = math.fsum(math.log1p(self._shared[term]) * _share(term) for term in terms)
        worth = told / math.sqrt(max(len(terms), _SHORTEST_COUNTED_TERMS))
        worth += _OF_A_NAME * math.fsum(math.log1p(n) for name, n in self._names.items() if f" {name} " in key)
        return worth * understood(bare) * (_OF_A_PART if text.endswith("…") else 1.0)


def _share(term: str) -> float:
    return _OF_CHATTER if term in small_talk_stems() else 1.0


def _candidates(warm: WarmContent) -> Iterator[tuple[str, float]]:
    """Every sentence that is kept, with what its kind is worth: a proposal is as much as a claim.

    A question in the summary is what was asked, one among the points only led to something.
    """
    for text in cut(warm.summary):
        yield text, _OF_A_SUMMARY * (_OF_A_FRAGMENT if text.endswith("…") else 1.0)
    for text in warm.key_points:
        yield text, (_OF_A_QUESTION if text.rstrip("!)» \"'").endswith("?") else 1.0)
    yield from ((each.text, _OF_A_DECISION if decides(each.text) else 1.0) for each in warm.decisions)


def _whole(text: str) -> str:
    speaker = _SPEAKER.match(text)
    return f"{speaker[0]}{without_lead(text[speaker.end() :])}" if speaker else without_lead(text)


def _main_clauses(whole: str) -> list[str]:
    """The longer and longer beginnings that end with a clause."""
    if _SUBORDINATE.match(_SPEAKER.sub("", whole)):
        return []
    return [f"{whole[: end.start()]}…" for end in _CLAUSE.finditer(whole)]


def _tells(text: str) -> bool:
    bare = _SPEAKER.sub("", text)
    return len(meant(bare)) >= _FEWEST_TERMS and count(bare) >= _FEWEST_WORDS and not is_small_talk(bare)
