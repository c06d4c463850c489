"""What a handler asks on the side, apart from the story that it tells."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from mindbus.bus.context import MessageContext, current_message

T = TypeVar("T")


async def aside(scope: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work with message ids of its own, derived from the scope as well as from the message at hand.

    A handler that is run again may have less to ask, since it finds what it made before. Were its questions counted
    among its messages, its outcome would then bear the id of another message, be taken for that one's repetition.
    """
    context = current_message()
    if context is None:
        return await work()
    return await asyncio.create_task(
        _scoped(replace(context, consumer=f"{context.consumer}/{scope}", sent=Counter()), work)
    )


async def _scoped(context: MessageContext, work: Callable[[], Awaitable[T]]) -> T:
    with context:
        return await work()
