"""What a handler asks on the side, apart from the story that it tells."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from mindbus.bus.handling import Handling, at_hand

T = TypeVar("T")


async def aside(scope: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work with message ids of its own, derived from the scope as well as from the message at hand.

    A handler that is run again may have less to ask, since it finds what it made before. Were its questions counted
    among its messages, its outcome would then bear the id of another message, be taken for that one's repetition.
    """
    handling = at_hand()
    if handling is None:
        return await work()
    return await asyncio.create_task(
        _scoped(replace(handling, consumer=f"{handling.consumer}/{scope}", sent=Counter()), work)
    )


async def _scoped(handling: Handling, work: Callable[[], Awaitable[T]]) -> T:
    with handling:
        return await work()
