"""Results of a search that say the same, of which one stands for all, and those that contradict each other."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations

from pydantic import JsonValue
from pydantic_core import to_json

from bus_schema.glm import FoundKem, KemContradiction, KemTwin
from bus_schema.kem import Kem
from language.statements import FIRST_PERSON, Statement
from language.words import stem, terms, with_signs_as_words, words

COMPARED = 30
"""So many of the first results are read as statements; of the others only those in the same words are twins."""
# Where a unit comes from; of what it says any other key of its metadata may be a part, such as a person.
_ORIGIN = frozenset({"artifact_id", "page", "part", "path", "revision", "run_id", "section"})
# Who said it and when: the same may be said by several, and contradicted.
_SAYING = frozenset({"agent", "fact_id", "fragment_id", "kind", "message_id", "said_at", "source", "status"})
# Words that come and go while a sentence says the same; «не», "to", "before" do not.
_LIGHT = frozenset({"a", "an", "the", "is", "are", "was", "were", "это"})
_FEWEST_WORDS = 3
# A longer text makes several statements.
_MOST_CHARS = 300
# Share of the words of the shorter one: what has less in common is about something else.
_COMMON_WORDS = 0.5


class Agreement:
    """Compares the results of one search, of which it reads each as a statement once."""

    def __init__(self) -> None:
        self._words: dict[str, frozenset[str]] = {}
        self._statements: dict[str, Statement] = {}

    def folded(self, ranked: Iterable[FoundKem]) -> list[FoundKem]:
        """Results without those that a better one stands for; what comes after a result does not change that."""
        best: dict[object, FoundKem] = {}
        for found in ranked:
            key = _key(found)
            if key not in best:
                compared = best.items() if len(best) < COMPARED else ()
                key = next((other for other, first in compared if self._say_the_same(first, found)), key)
            if (first := best.get(key)) is None:
                best[key] = found
            else:
                kem = found.kem
                twin = KemTwin(kem_id=kem.id, owner=kem.owner, source=kem.source)
                best[key] = first.model_copy(update={"twins": (*first.twins, twin)})
        return list(best.values())

    def with_contradictions(self, results: Sequence[FoundKem]) -> list[FoundKem]:
        """The results, those that hold with what they contradict among the first, the best of which follows each."""
        marks: dict[str, list[KemContradiction]] = {}
        for one, other in combinations(results[:COMPARED], 2):
            if _holds(one) and _holds(other) and self._contradict(one.kem, other.kem):
                marks.setdefault(one.kem.id, []).append(_mark(other.kem, one.kem))
                marks.setdefault(other.kem.id, []).append(_mark(one.kem, other.kem))
        marked = {
            each.kem.id: each.model_copy(update={"contradicts": tuple(marks.get(each.kem.id, ()))}) for each in results
        }
        ordered: dict[str, FoundKem] = {}
        for kem_id, each in marked.items():
            for shown in (kem_id, *(mark.kem_id for mark in each.contradicts[:1])):
                ordered.setdefault(shown, marked[shown])
        return list(ordered.values())

    def _say_the_same(self, one: FoundKem, other: FoundKem) -> bool:
        """Whether two units state the same values in the same words."""
        is_of_one = (_holds(one), _about(one.kem)) == (_holds(other), _about(other.kem))
        return is_of_one and self._are_alike(one.kem, other.kem) and self._read(one.kem).repeats(self._read(other.kem))

    def _contradict(self, one: Kem, other: Kem) -> bool:
        if not self._are_alike(one, other) or (one.owner != other.owner and _speaks_of_itself(one, other)):
            return False
        about, of_other = (_without(each.metadata, _ORIGIN | _SAYING) for each in (one, other))
        is_of_one = all(about[key] == of_other[key] for key in about.keys() & of_other.keys())
        return is_of_one and self._read(one).contradicts(self._read(other))

    def _are_alike(self, one: Kem, other: Kem) -> bool:
        """Whether it is worth the while to read two units as statements."""
        if not all(each.content and len(each.content) <= _MOST_CHARS for each in (one, other)):
            return False
        said, of_other = self._words_of(one), self._words_of(other)
        return len(said & of_other) >= _COMMON_WORDS * max(min(len(said), len(of_other)), 1)

    def _words_of(self, kem: Kem) -> frozenset[str]:
        if kem.id not in self._words:
            self._words[kem.id] = frozenset(terms(kem.content or ""))
        return self._words[kem.id]

    def _read(self, kem: Kem) -> Statement:
        if kem.id not in self._statements:
            self._statements[kem.id] = Statement(kem.content or "", kem.created_at)
        return self._statements[kem.id]


def _key(found: FoundKem) -> object:
    """Words of a unit in order, apart from their grammatical forms, with its metadata, and whether it holds."""
    kem = found.kem
    said = [stem(word) for word in words(with_signs_as_words(kem.content or "")) if word.lower() not in _LIGHT]
    if len(said) < _FEWEST_WORDS:
        return kem.id
    return " ".join(said), _about(kem), _holds(found)


def _about(kem: Kem) -> bytes:
    return to_json(dict(sorted(_without(kem.metadata, _ORIGIN).items())))


def _without(metadata: Mapping[str, JsonValue], keys: frozenset[str]) -> dict[str, JsonValue]:
    return {name: value for name, value in metadata.items() if name not in keys}


def _holds(found: FoundKem) -> bool:
    return found.explain is None or found.explain.validity == 1.0


def _speaks_of_itself(*kems: Kem) -> bool:
    # What one says of oneself, no other person contradicts.
    return any(FIRST_PERSON.search(kem.content or "") for kem in kems)


def _mark(kem: Kem, of: Kem) -> KemContradiction:
    return KemContradiction(kem_id=kem.id, is_newer=_since(kem) > _since(of))


def _since(kem: Kem) -> datetime:
    return kem.valid_from or kem.created_at
