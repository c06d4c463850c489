"""Dialogues kept by storage, and histories kept by the history worker."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import TypeVar

from pydantic import BaseModel

from bus_schema.artifacts import ArtifactRef, Manifest
from bus_schema.conversations import (
    MAX_SAVED,
    GetAllActiveDialogues,
    GetDialogueFragment,
    GetMessage,
    GetMessages,
    Saved,
    SaveDialogueFragment,
    SaveMessage,
    SaveMessages,
)
from bus_schema.dialogue import (
    MAX_MESSAGE_CHARS,
    DialogueFragment,
    DialogueMessage,
    DialogueState,
    Transcript,
    conversation_trace,
)
from bus_schema.history import (
    MAX_ADDITIONS,
    MAX_APPENDED,
    Appended,
    AppendHistories,
    AppendHistory,
    ChatHistory,
    ChatMessage,
    GetHistory,
    HistoryAddition,
    HistoryMessage,
    RefreshDialogue,
    ShowHistory,
)
from bus_schema.identities import is_user_id
from bus_schema.messages import Cause, Command
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.context import current_message
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure, Unroutable
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import ArtifactError, ArtifactNotFound
from mindbus.sdk.preview import as_text
from mindbus.sdk.requests import RequestGroup, in_id_scope, items_of, request_in_scope
from mindbus.sdk.transfers import read_whole

ResultT = TypeVar("ResultT", bound=BaseModel)

_MAX_TRANSCRIPT_BYTES = 256 * 1024**2
_MAX_TEXT_BYTES = 4 * MAX_MESSAGE_CHARS


class Conversations:
    """Dialogues kept by storage. Every method raises Rejected, TemporaryFailure or BusUnavailable."""

    def __init__(self, bus: Client, artifacts: Artifacts, *, largest_inline_bytes: int) -> None:
        self._bus, self._artifacts, self._largest_inline_bytes = bus, artifacts, largest_inline_bytes
        self._saves = RequestGroup(bus, _save_all, Saved, MAX_SAVED)

    async def keep(self, message: DialogueMessage) -> Saved:
        """Store a message; with other words under the same id it is rejected as a conflict."""
        fields = message.model_dump(include=set(DialogueMessage.model_fields))
        digest = sha256(message.model_dump_json(exclude={"time"}).encode()).hexdigest()
        command = SaveMessage.model_validate(fields)
        scope, trace = f"{message.message_id}/{digest}", message.trace_id
        part = message, context.cause if (context := current_message()) else None
        return await self._saves.request(part, lambda: request_in_scope(self._bus, command, scope, trace=trace))

    async def recent(self, user_id: str, limit: int) -> list[DialogueMessage]:
        """The last messages, oldest first, with their text."""
        page = await request_in_scope(self._bus, GetMessages(user_id=user_id, order="newest", limit=limit))
        return [await self.with_text(message) for message in reversed(page.items)]

    async def find(self, user_id: str, message_id: str) -> DialogueMessage | None:
        return await self._get_or_none(GetMessage(user_id=user_id, message_id=message_id))

    async def with_text(self, message: DialogueMessage) -> DialogueMessage:
        """The message with its text, where it came as a pointer to it."""
        if message.ref is None:
            return message
        content = await self._read(message.ref, message.user_id, _MAX_TEXT_BYTES)
        try:
            text = content.decode()[:MAX_MESSAGE_CHARS]
        except UnicodeDecodeError as error:
            raise PermanentFailure(f"{message.ref.artifact_id} is not text", Code.INVALID) from error
        return message.model_copy(update={"content": text, "ref": None})

    async def beginning(self, ref: ArtifactRef, user_id: str, most_bytes: int) -> str | None:
        """The text that an artifact of the dialogue begins with; None where it is not text."""

        async def read() -> bytes:
            trace, length = conversation_trace(user_id), min(most_bytes, ref.size_bytes)
            async with self._artifacts.open(ref.artifact_id, trace=trace, length=length) as reader:
                _require_of_user(reader.manifest, user_id)
                return b"".join([chunk async for chunk in reader])

        if not ref.size_bytes:
            return ""
        content = await self._reading(ref, read)
        return as_text(content, is_cut=len(content) < ref.size_bytes)

    async def buffer(self, user_id: str) -> DialogueState | None:
        """The messages that are in no fragment yet, if any."""
        page = await request_in_scope(self._bus, GetAllActiveDialogues(user_id=user_id))
        return next(iter(page.items), None)

    async def silent_since(self, moment: datetime) -> AsyncIterator[str]:
        """Users whose dialogue has a buffer and no message after a moment."""
        query = GetAllActiveDialogues(silent_since=moment)
        async for state in items_of(self._bus, query):
            yield state.user_id

    async def fragment(self, fragment_id: str) -> DialogueFragment | None:
        """A saved fragment, ready to be published again, or None."""
        fragment = await self._get_or_none(GetDialogueFragment(fragment_id=fragment_id))
        return None if fragment is None else await self._portable(fragment)

    async def keep_fragment(self, fragment: DialogueFragment) -> DialogueFragment:
        """Store a fragment, which empties the buffer; one too large for a message is returned with a pointer."""
        portable = await self._portable(fragment)
        trace = conversation_trace(fragment.user_id)
        await request_in_scope(self._bus, SaveDialogueFragment(fragment=portable), fragment.fragment_id, trace=trace)
        return portable

    async def whole(self, fragment: DialogueFragment) -> DialogueFragment:
        messages: Iterable[DialogueMessage] = fragment.messages
        if fragment.ref is not None:
            content = await self._read(fragment.ref, fragment.user_id, _MAX_TRANSCRIPT_BYTES)
            messages = Transcript.model_validate_json(content).messages
        worded = tuple([await self.with_text(message) for message in messages])
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
        except OSError as error:
            raise TemporaryFailure(str(error)) from error
        if put.outcome == "pending":
            raise TemporaryFailure("the transcript waits for storage")
        return fragment.model_copy(update={"messages": (), "ref": put.manifest.ref})

    async def _read(self, ref: ArtifactRef, user_id: str, max_bytes: int) -> bytes:
        async def read() -> bytes:
            async with self._artifacts.open(ref.artifact_id, trace=conversation_trace(user_id)) as reader:
                _require_of_user(reader.manifest, user_id)
                return await read_whole(reader, max_bytes)

        return await self._reading(ref, read)

    async def _reading(self, ref: ArtifactRef, read: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            return await in_id_scope(ref.artifact_id, read)
        except OSError as error:
            raise TemporaryFailure(str(error)) from error
        except ArtifactError as error:
            raise Rejected(Code.NOT_FOUND, f"{ref.artifact_id}: {error}") from error

    async def _get_or_none(self, query: Command[ResultT]) -> ResultT | None:
        try:
            return await request_in_scope(self._bus, query)
        except Rejected as error:
            if error.code is Code.NOT_FOUND:
                return None
            raise


async def refresh_dialogue(bus: Client, user_id: str | None) -> None:
    """Have the dialogue read anew what it keeps of a user, or of all; confirmed, so before any later message.

    Nothing is kept where no dialogue has been started yet, nor of a chat with nobody's id. Raises BusUnavailable.
    """
    if user_id is not None and not is_user_id(user_id):
        return
    for target in (None,) if user_id is not None else bus.targets_of("dialogue"):
        with suppress(Unroutable):
            await in_id_scope(None, partial(bus.send, RefreshDialogue(user_id=user_id), to=target))


class HistoryClient:
    """Conversations as models are shown them, kept by the history worker. Raises as Conversations does.

    Every request has an id of its own, so that it is answered anew after a crash; a repeated append is recognised by
    the ids of its messages.
    """

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self._appends = RequestGroup(bus, _append_all, Appended, MAX_ADDITIONS)

    async def window(self, key: str, messages: int | None = None) -> list[ChatMessage]:
        """The last messages, as a model is shown them; without a number as many as the service decides."""
        return list((await request_in_scope(self._bus, GetHistory(key=key, context_window=messages))).messages)

    async def window_of_tokens(self, key: str, tokens: int) -> ChatHistory:
        """The last messages that fit an estimated number of tokens, with their ids."""
        return await request_in_scope(self._bus, GetHistory(key=key, context_tokens=max(1, tokens)))

    async def stored_messages(self, key: str) -> list[HistoryMessage]:
        return list((await request_in_scope(self._bus, ShowHistory(key=key))).messages)

    async def append(self, key: str, messages: Sequence[HistoryMessage]) -> Appended:
        """Append messages, confirmed; a message whose id is there already stays as it is.

        Of several portions the outcome of the last one has the version before the first.
        """
        portions = [messages[start : start + MAX_APPENDED] for start in range(0, len(messages), MAX_APPENDED)]
        outcomes = [await self._append(HistoryAddition(key=key, messages=tuple(portion))) for portion in portions]
        return outcomes[-1].model_copy(update={"preceding": outcomes[0].preceding})

    async def _append(self, addition: HistoryAddition) -> Appended:
        command = AppendHistory(key=addition.key, messages=addition.messages)
        return await self._appends.request(addition, lambda: request_in_scope(self._bus, command))


def _save_all(parts: Sequence[tuple[DialogueMessage, Cause | None]]) -> SaveMessages:
    messages, causes = zip(*parts, strict=True)
    return SaveMessages(messages=messages, causes=causes)


def _append_all(additions: Sequence[HistoryAddition]) -> AppendHistories:
    return AppendHistories(additions=tuple(additions))


def _require_of_user(manifest: Manifest, user_id: str) -> None:
    """Raise ArtifactNotFound for what the assistant may read and the user may not, such as another's transcript."""
    is_theirs = manifest.owner == f"user.{user_id}" or manifest.trace_id == conversation_trace(user_id)
    if manifest.visibility != "public" and not is_theirs:
        raise ArtifactNotFound(f"{ArtifactNotFound.__doc__} ({manifest.id})")
