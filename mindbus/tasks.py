"""Cancellation of tasks that is certain to end them."""

import asyncio
from typing import Any

_CANCEL_AGAIN_S = 5.0


async def end(*tasks: "asyncio.Task[Any]", try_again_s: float = _CANCEL_AGAIN_S) -> None:
    """Cancel tasks until they are done; their results and errors are dropped.

    Cancelling once is not always enough: a library in between may take the cancellation for its own and go on.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=try_again_s)
    await asyncio.gather(*tasks, return_exceptions=True)
