"""How far a long way has come, for whoever waits."""

from collections.abc import AsyncIterator, Callable
from typing import Literal

# In this order; bytes that need only be moved are not sent; to register them, storage reads them all.
Phase = Literal["receive", "send", "register", "read"]
# The phase, the bytes that are done of it, all of them where that is known; may be called from any thread.
Progress = Callable[[Phase, int, int | None], None]


def nobody(_phase: Phase, _done_bytes: int, _total_bytes: int | None) -> None:
    """Tell nobody."""


async def told(
    pieces: AsyncIterator[bytes], phase: Phase, progress: Progress, total_bytes: int | None
) -> AsyncIterator[bytes]:
    """The same pieces, each told of once the next one is asked for."""
    done_bytes = 0
    async for piece in pieces:
        yield piece
        done_bytes += len(piece)
        progress(phase, done_bytes, total_bytes)
