"""Conversations as models are shown them, kept by the history worker."""

import secrets
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from bus_schema.history import (
    MAX_APPENDED,
    AppendHistory,
    ChatMessage,
    GetHistory,
    HistoryMessage,
    ShowHistory,
)
from bus_schema.messages import Command
from mindbus.bus.client import Client
from mindbus.sdk.aside import aside
from mindbus.sdk.asking import ask

ResultT = TypeVar("ResultT", bound=BaseModel)


class Histories:
    """What was said under a key, to read or to add to. Raises Rejected, TemporaryFailure, BusUnavailable."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus

    async def window(self, key: str, messages: int | None = None) -> list[ChatMessage]:
        """The end of a talk, as a model is shown it; without a number as long as the service finds right."""
        found = await self._ask(GetHistory(key=key, context_window=messages))
        return list(found.messages)

    async def stored(self, key: str) -> list[HistoryMessage]:
        """All of it, with ids: to see what was kept before a crash."""
        return list((await self._ask(ShowHistory(key=key))).messages)

    async def append(self, key: str, messages: Sequence[HistoryMessage]) -> None:
        """Add them at the end, confirmed; whatever is there under its id stays as it is."""
        for at in range(0, len(messages), MAX_APPENDED):
            await self._ask(AppendHistory(key=key, messages=tuple(messages[at : at + MAX_APPENDED])))

    async def _ask(self, command: Command[ResultT]) -> ResultT:
        # Each under an id of its own: whoever asks again after a crash must hear the answer itself, and what repeats
        # an append is recognised by the ids of its messages.
        return await aside(secrets.token_hex(8), lambda: ask(self._bus, command))
