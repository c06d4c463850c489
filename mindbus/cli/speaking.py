"""One message to the assistant, with its answer as it comes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from pydantic import ValidationError

from bus_schema.dialogue import Answered, Invoke, conversation_trace
from bus_schema.envelope import explain
from bus_schema.ids import mint
from mindbus.bus.client import Client
from mindbus.cli.console import write
from mindbus.cli.errors import UsageError
from mindbus.settings import Settings


def said_by(user_id: str, text: str, *, stream: bool) -> Invoke:
    """Raises UsageError where it cannot be said."""
    try:
        return Invoke(user_id=user_id, message=text, message_id=mint("msg"), stream=stream)
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid


class Speaker:
    """Says what a user says; `within_s` is how long an answer may take."""

    def __init__(self, bus: Client, settings: Settings) -> None:
        self._bus = bus
        self.within_s = settings.llm_timeout_s + settings.request_timeout_s

    async def say_aloud(self, said: Invoke) -> Answered:
        """Print the answer while it grows. Raises ReplyError, BusUnavailable."""
        shown = ""
        pieces = self._bus.stream(said, trace=conversation_trace(said.user_id), timeout_s=self.within_s)
        async with aclosing(cast("AsyncGenerator[str | Answered]", pieces)):
            async for piece in pieces:
                if isinstance(piece, Answered):
                    write(_rest(piece.response, shown) + "\n")
                    return piece
                shown += piece
                write(piece)
        raise AssertionError("unreachable: a stream ends with its result")


def _rest(response: str, shown: str) -> str:
    """What of the answer is not shown yet: pieces may get lost, the whole never does."""
    return response.removeprefix(shown) if response.startswith(shown) else f"\n{response}"
