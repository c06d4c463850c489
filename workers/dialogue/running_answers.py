"""Answers while they are generated: ended at the asker's deadline, when the asker leaves, or by a cancellation."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agents.dialogue.generation import cut_off_mark, unavailable_message
from bus_schema.dialogue import MAX_MESSAGE_CHARS, DialogueMessage
from bus_schema.history import sanitise_text
from bus_schema.replies import Code, restarts
from mindbus.bus.context import current_message
from mindbus.errors import Expired, Rejected

# The answer so far still has to reach the asker.
_GRACE = timedelta(seconds=2)
_GRACE_SHARE = 0.1


class AskerLeft(Exception):
    """Nobody takes the pieces of the answer any more."""


class AnswerInterrupted(Expired):
    """Nobody waits for the answer any more, and none of it had come; the question is kept."""


class ModelAway(Rejected, code=Code.UNAVAILABLE):
    """The language model does not answer now; the question is kept, and answered when the user says to try again."""

    def __init__(self, question: DialogueMessage) -> None:
        super().__init__(
            message=unavailable_message(question.content or ""),
            details={"reason": "model_unavailable", "message_id": question.message_id},
        )


@dataclass
class _RunningAnswer:
    """An answer from the arrival of its question on; without a `timeout` the model has not been called yet."""

    is_cancelled: bool = False
    timeout: asyncio.Timeout | None = None


class RunningAnswers:
    """The answers that are being generated now, by the user and the id of the message that they answer.

    Of an id alone, which a client may choose, another user could stop or hide the answer.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], _RunningAnswer] = {}

    @contextmanager
    def expecting(self, user_id: str, message_id: str) -> Iterator[None]:
        """An answer that can be cancelled before the model is called."""
        self._running[user_id, message_id] = _RunningAnswer()
        try:
            yield
        finally:
            self._running.pop((user_id, message_id), None)

    def cancel(self, user_id: str, message_id: str) -> bool:
        """Stop an answer; False where it is not being generated."""
        running = self._running.get((user_id, message_id))
        if running is None or running.is_cancelled:
            return False
        running.is_cancelled = True
        if running.timeout is not None and not running.timeout.expired():
            running.timeout.reschedule(0)
        return True

    async def text(
        self,
        user_id: str,
        message_id: str,
        pieces: AsyncGenerator[str],
        write: Callable[[str], Awaitable[None]],
    ) -> str:
        """The whole answer, or as much as came before the interruption, marked as cut off.

        The model is called no more after the asker's deadline. Raises AnswerInterrupted where nothing has come.
        """
        running = self._running.setdefault((user_id, message_id), _RunningAnswer())
        shown: list[str] = []
        try:
            async with asyncio.timeout(0 if running.is_cancelled else _left_s()) as running.timeout, aclosing(pieces):
                async for piece in pieces:
                    if restarts(piece):
                        shown.clear()
                    shown.append(piece)
                    await write(piece)
        except (TimeoutError, AskerLeft) as error:
            text = "".join(shown)
            if not text.strip():
                raise AnswerInterrupted from error
            shown.append(cut_off_mark(text))
        finally:
            self._running.pop((user_id, message_id), None)
        return sanitise_text("".join(shown))[:MAX_MESSAGE_CHARS]


def _left_s() -> float | None:
    """Seconds until the answer has to end for its asker; None without a deadline."""
    context = current_message()
    deadline = context.deadline if context else None
    if deadline is None:
        return None
    left = deadline - datetime.now(UTC)
    return (left - min(_GRACE, left * _GRACE_SHARE)).total_seconds()
