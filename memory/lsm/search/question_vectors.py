"""The vectors of questions."""

import asyncio
from collections import OrderedDict

from memory.embedding.embedder import Embedder
from memory.embedding.failures import EmbedderFailure
from mindbus.logs import logger

_KEPT = 512
_WITHIN_S = 2.0


class QuestionVectors:
    """Those asked last are kept; without an embedder, or while it is away, there is none."""

    def __init__(self) -> None:
        self.embedder: Embedder | None = None
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    @property
    def model(self) -> str | None:
        """Whose vectors they are."""
        return None if self.embedder is None else self.embedder.space.model

    async def of(self, question: str) -> bytes | None:
        """Words alone are compared where there is none."""
        if self.embedder is None:
            return None
        if question not in self._kept:
            try:
                async with asyncio.timeout(_WITHIN_S):
                    self._kept[question] = (await self.embedder.query(question)).raw
            except (EmbedderFailure, TimeoutError) as trouble:
                logger().warning("searched by words alone", reason=str(trouble) or "the embedder took too long")
                return None
        self._kept.move_to_end(question)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self._kept[question]
