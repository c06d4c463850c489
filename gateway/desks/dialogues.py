"""Talk with users, as a person at a screen or a program behind the API has it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal, cast

from bus_schema.conversations import DialoguePage, GetAllActiveDialogues, GetMessages, ListDialogues, MessagePage
from bus_schema.dialogue import Answered, DialogueState, EndDialogue, Ended, Invoke, conversation_trace
from bus_schema.ids import mint
from mindbus.bus.client import Client
from mindbus.settings import Settings


class DialogueDesk:
    """Says, reads, ends; what is said is said as the user."""

    bus: Client
    settings: Settings

    async def send_message(
        self, user_id: str, text: str, *, message_id: str | None = None
    ) -> AsyncGenerator[str | Answered]:
        """The answer piece by piece, then whole; the same message id again is heard once.

        Whoever listens no more has still been answered. Raises ReplyError, BusUnavailable.
        """
        said = Invoke(user_id=user_id, message=text, message_id=message_id or mint("msg"), stream=True)
        settings = self.settings
        within_s = settings.llm_timeout_s + settings.subagent_timeout_s + settings.request_timeout_s
        pieces = self._as(user_id).stream(said, trace=conversation_trace(user_id), timeout_s=within_s)
        async with aclosing(cast("AsyncGenerator[str | Answered]", pieces)):
            async for piece in pieces:
                yield piece

    async def history(
        self,
        user_id: str,
        cursor: str | None = None,
        limit: int = 50,
        order: Literal["oldest", "newest"] = "newest",
    ) -> MessagePage:
        """What was said, hidden instructions included, which say so by their kind."""
        wanted = GetMessages(user_id=user_id, cursor=cursor, limit=limit, order=order)
        return await self._as(user_id).request(wanted, trace=conversation_trace(user_id))

    async def all_dialogues(self, cursor: str | None = None, limit: int = 50) -> DialoguePage:
        """Everybody with whom something was said, the latest first."""
        return await self.bus.request(ListDialogues(cursor=cursor, limit=limit))

    async def dialogues(self) -> list[DialogueState]:
        """Dialogues of which something is still to become a fragment, the latest first."""
        found: list[DialogueState] = []
        wanted = GetAllActiveDialogues(limit=100)
        while True:
            page = await self.bus.request(wanted)
            found += page.items
            if page.next_cursor is None:
                return sorted(found, key=lambda dialogue: dialogue.last_activity, reverse=True)
            wanted = wanted.model_copy(update={"cursor": page.next_cursor})

    async def end_dialogue(self, user_id: str) -> Ended:
        """Make a fragment of what has been said."""
        return await self._as(user_id).request(EndDialogue(user_id=user_id), trace=conversation_trace(user_id))

    def _as(self, user_id: str) -> Client:
        return self.bus.acting_as(f"user.{user_id}")
