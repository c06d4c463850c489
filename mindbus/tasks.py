"""Ending tasks of one's own, for sure."""

import asyncio
from typing import Any

_TRY_AGAIN_S = 5.0


async def end(*tasks: "asyncio.Task[Any]", try_again_s: float = _TRY_AGAIN_S) -> None:
    """Cancel them until they are over; whatever they end with is theirs.

    Once is not always enough: a library in between may take a cancellation for one of its own, then go on.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=try_again_s)
    await asyncio.gather(*tasks, return_exceptions=True)
