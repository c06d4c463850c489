"""What memory has found, as material for whoever speaks or writes."""

from collections.abc import Iterable

from agents.models.prompt import Material
from agents.text import first_words, words
from bus_schema.glm import Explanation, FoundKem

MEMORY = "memory"
_LONGEST_WORDS = 120
# Of the words of a question that weigh anything, such a share; or so near in meaning, whatever the words.
_WORDS, _MEANING = 0.15, 0.32


def recollected(found: Iterable[FoundKem], room_words: int) -> tuple[Material, ...]:
    """The texts that bear on the question, as far as there is room, under the ids of their units."""
    materials = []
    for each in found:
        text = first_words((each.kem.content or "").strip(), _LONGEST_WORDS)
        if not text or not _bears_on_it(each.explain or Explanation()):
            continue
        room_words -= len(words(text))
        if room_words < 0:
            break
        materials.append(Material(each.kem.id, MEMORY, text))
    return tuple(materials)


def _bears_on_it(why: Explanation) -> bool:
    """Something always comes nearest; that alone does not make it of use."""
    return (why.lexical or 0) >= _WORDS or (why.dense or 0) >= _MEANING
