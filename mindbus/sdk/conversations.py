"""Dialogues, as storage keeps them."""

import secrets
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from hashlib import sha256
from typing import TypeVar

from pydantic import BaseModel

from bus_schema.artifacts import ArtifactRef
from bus_schema.conversations import (
    GetAllActiveDialogues,
    GetDialogueFragment,
    GetMessage,
    GetMessages,
    Saved,
    SaveDialogueFragment,
    SaveMessage,
)
from bus_schema.dialogue import (
    MAX_MESSAGE_CHARS,
    DialogueFragment,
    DialogueMessage,
    DialogueState,
    Transcript,
    conversation_trace,
)
from bus_schema.messages import Command
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.aside import aside
from mindbus.sdk.asking import ask
from mindbus.sdk.failures import ArtifactNotFound, ArtifactRefused, ArtifactUnreadable, BufferFull, StorageAway

ResultT = TypeVar("ResultT", bound=BaseModel)

_LARGEST_TRANSCRIPT_BYTES = 256 * 1024**2
_LONGEST_BYTES = 4 * MAX_MESSAGE_CHARS


class Conversations:
    """What was said, to read or to add to. Everything here raises Rejected, TemporaryFailure or BusUnavailable."""

    def __init__(self, bus: Client, artifacts: Artifacts, *, largest_inline_bytes: int) -> None:
        self._bus, self._artifacts, self._largest_inline_bytes = bus, artifacts, largest_inline_bytes

    async def keep(self, message: DialogueMessage) -> Saved:
        """Store it; said again under its id with other words, it is refused as a conflict."""
        said = message.model_dump(include=set(DialogueMessage.model_fields))
        words = sha256(message.model_dump_json(exclude={"time"}).encode()).hexdigest()
        command = SaveMessage.model_validate(said)
        return await aside(f"{message.message_id}/{words}", lambda: ask(self._bus, command, trace=message.trace_id))

    async def recent(self, user_id: str, limit: int) -> list[DialogueMessage]:
        """The last so many messages, oldest first, with their words."""
        page = await self._ask(GetMessages(user_id=user_id, order="newest", limit=limit))
        return [await self.worded(message) for message in reversed(page.items)]

    async def find(self, user_id: str, message_id: str) -> DialogueMessage | None:
        """One message, if it is there."""
        try:
            return await self._ask(GetMessage(user_id=user_id, message_id=message_id))
        except Rejected as no:
            if no.code is Code.NOT_FOUND:
                return None
            raise

    async def worded(self, message: DialogueMessage) -> DialogueMessage:
        """The message with its words, where it came as a pointer to them."""
        if message.ref is None:
            return message
        text = await self._read(message.ref, message.user_id, _LONGEST_BYTES)
        try:
            words = text.decode()[:MAX_MESSAGE_CHARS]
        except UnicodeDecodeError as not_text:
            raise PermanentFailure(f"{message.ref.artifact_id} is no text", Code.INVALID) from not_text
        return message.model_copy(update={"content": words, "ref": None})

    async def buffer(self, user_id: str) -> DialogueState | None:
        """What no fragment has been made of, if anything."""
        page = await self._ask(GetAllActiveDialogues(user_id=user_id))
        return next(iter(page.items), None)

    async def silent_since(self, moment: datetime) -> AsyncIterator[str]:
        """The users with whom nothing was said after a moment, in whose dialogues there is something to end."""
        wanted = GetAllActiveDialogues(silent_since=moment)
        while True:
            page = await self._ask(wanted)
            for state in page.items:
                yield state.user_id
            if page.next_cursor is None:
                return
            wanted = wanted.model_copy(update={"cursor": page.next_cursor})

    async def fragment(self, fragment_id: str) -> DialogueFragment | None:
        """A fragment that has been saved, ready to be told once more."""
        try:
            found = await self._ask(GetDialogueFragment(fragment_id=fragment_id))
        except Rejected as no:
            if no.code is Code.NOT_FOUND:
                return None
            raise
        return await self._portable(found)

    async def keep_fragment(self, fragment: DialogueFragment) -> DialogueFragment:
        """Store it, which empties the buffer; what is too large for a message is told by pointer."""
        portable = await self._portable(fragment)
        command = SaveDialogueFragment(fragment=portable)
        trace = conversation_trace(fragment.user_id)
        await aside(fragment.fragment_id, lambda: ask(self._bus, command, trace=trace))
        return portable

    async def whole(self, fragment: DialogueFragment) -> DialogueFragment:
        """The fragment with all words in it, wherever they lie."""
        messages: Iterable[DialogueMessage] = fragment.messages
        if fragment.ref is not None:
            content = await self._read(fragment.ref, fragment.user_id, _LARGEST_TRANSCRIPT_BYTES)
            messages = Transcript.model_validate_json(content).messages
        worded = tuple([await self.worded(message) for message in messages])
        return fragment.model_copy(update={"messages": worded, "ref": None})

    async def _portable(self, fragment: DialogueFragment) -> DialogueFragment:
        if fragment.ref or len(fragment.model_dump_json()) <= self._largest_inline_bytes:
            return fragment
        digits = fragment.fragment_id.removeprefix("frag_").replace("-", "")
        try:
            put = await self._artifacts.put(
                Transcript(messages=fragment.messages).model_dump_json().encode(),
                artifact_type="dialogue_fragment",
                artifact_id=f"art_{digits}",
                content_type="application/json",
                trace=conversation_trace(fragment.user_id),
            )
        except (BufferFull, StorageAway, OSError) as away:
            raise TemporaryFailure(str(away)) from away
        if put.outcome == "pending":
            raise TemporaryFailure("the transcript waits for storage")
        return fragment.model_copy(update={"messages": (), "ref": put.manifest.ref})

    async def _read(self, ref: ArtifactRef, user_id: str, max_bytes: int) -> bytes:
        trace = conversation_trace(user_id)
        try:
            return await aside(
                ref.artifact_id, lambda: self._artifacts.get(ref.artifact_id, trace=trace, max_bytes=max_bytes)
            )
        except (StorageAway, OSError) as away:
            raise TemporaryFailure(str(away)) from away
        except (ArtifactNotFound, ArtifactRefused, ArtifactUnreadable) as no:
            raise Rejected(Code.NOT_FOUND, f"{ref.artifact_id}: {no}") from no

    async def _ask(self, query: Command[ResultT]) -> ResultT:
        return await aside(secrets.token_hex(8), lambda: ask(self._bus, query))
