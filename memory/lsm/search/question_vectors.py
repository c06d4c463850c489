"""The vectors of questions."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from memory.embedding.embedder import Embedder
from memory.embedding.errors import EmbedderFailure
from mindbus.logs import logger

_KEPT = 512
# Whoever answers a user waits for a search no longer than twice this.
_WITHIN_S = 1.0
# After so many failures in a row nobody waits for it, until some time has passed.
_FAILURES, _LEFT_ALONE_S = 2, 5.0


class QuestionVectors:
    """Those asked last are kept; without an embedder, or while it is away, there is none."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self.embedder: Embedder | None = None
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._seconds = seconds
        self._failures, self._failed_at = 0, 0.0

    @property
    def model(self) -> str | None:
        """Whose vectors they are."""
        return None if self.embedder is None else self.embedder.space.model

    async def of(self, question: str) -> bytes | None:
        """Words alone are compared where there is none."""
        if self.embedder is None:
            return None
        if question not in self._kept:
            vector = None if self._is_left_alone() else await self._embedded(self.embedder, question)
            if vector is None:
                return None
            self._kept[question] = vector
        self._kept.move_to_end(question)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self._kept[question]

    async def _embedded(self, embedder: Embedder, question: str) -> bytes | None:
        try:
            async with asyncio.timeout(_WITHIN_S):
                vector = (await embedder.query(question)).raw
        except (EmbedderFailure, TimeoutError) as trouble:
            logger().warning("searched by words alone", reason=str(trouble) or "the embedder took too long")
            self._failures, self._failed_at = self._failures + 1, self._seconds()
            return None
        self._failures = 0
        return vector

    def _is_left_alone(self) -> bool:
        return self._failures >= _FAILURES and self._seconds() - self._failed_at < _LEFT_ALONE_S
