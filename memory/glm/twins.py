"""Units that say the same in the same words: one result of a search stands for all, with where they come from."""

from collections.abc import Iterable

from pydantic_core import to_json

from bus_schema.glm import FoundKem, KemTwin
from language.words import stem, words

# Where a unit comes from; of what it says any other key of its metadata may be a part, such as a person.
_ORIGIN = frozenset({"artifact_id", "page", "part", "path", "revision", "run_id", "section"})
# Words that come and go while a sentence says the same; «не», "to", "before" do not.
_LIGHT = frozenset({"a", "an", "the", "is", "are", "was", "were", "это"})
_FEWEST_WORDS = 3


def folded(ranked: Iterable[FoundKem]) -> list[FoundKem]:
    """Results without those that a better one stands for."""
    best: dict[object, FoundKem] = {}
    for found in ranked:
        key = _key(found)
        if (first := best.get(key)) is None:
            best[key] = found
        else:
            kem = found.kem
            twin = KemTwin(kem_id=kem.id, owner=kem.owner, source=kem.source)
            best[key] = first.model_copy(update={"twins": (*first.twins, twin)})
    return list(best.values())


def _key(found: FoundKem) -> object:
    """Words of a unit in order, apart from their grammatical forms, with its metadata, and whether it holds."""
    kem, explain = found.kem, found.explain
    said = [stem(word) for word in words(kem.content or "") if word.lower() not in _LIGHT]
    if len(said) < _FEWEST_WORDS:
        return kem.id
    about = {name: value for name, value in kem.metadata.items() if name not in _ORIGIN}
    holds = explain is None or explain.validity == 1.0
    return " ".join(said), to_json(dict(sorted(about.items()))), holds
