"""Files that a user has attached to the last messages, as the assistant is shown them."""

from collections.abc import Iterator, Sequence

from agents.dialogue.agent import MemorySnippet
from bus_schema.artifacts import ArtifactRef
from bus_schema.dialogue import DialogueMessage
from bus_schema.message_parts import Attachment
from language.words import estimated_tokens
from mindbus.errors import Rejected
from mindbus.sdk.conversations import Conversations

_MOST_BYTES = 64 * 1024
# Of the tokens that memory has: the rest is for what is known besides.
_SHARE = 0.75
_LEAST_TOKENS = 40
_NO_TEXT = "({content_type}, {size_bytes} bytes: not a text, so its content cannot be shown)"
_UNREADABLE = "(this file cannot be read any more)"
_CUT = "\n(the file goes on: {shown} of {size} bytes are shown)"


async def attached_snippets(
    conversations: Conversations, said: DialogueMessage, recent: Sequence[DialogueMessage], budget_tokens: int
) -> list[MemorySnippet]:
    """The files by name, those of the last message first, cut to what fits the budget; others than texts are named."""
    room = _SHARE * budget_tokens
    snippets: list[MemorySnippet] = []
    for file in _newest_first(said, recent):
        text = await _content(conversations, file, said.user_id, int(room))
        room -= estimated_tokens(text)
        if snippets and room < 0:
            break
        snippets.append(MemorySnippet(file.name.replace('"', "'"), text, is_attached=True))
    return snippets


def _newest_first(said: DialogueMessage, recent: Sequence[DialogueMessage]) -> Iterator[Attachment]:
    yield from said.attachments
    for message in reversed(recent):
        if message.message_id != said.message_id:
            yield from message.attachments


async def _content(conversations: Conversations, file: Attachment, user_id: str, room_tokens: int) -> str:
    try:
        text = await conversations.beginning(file.ref, user_id, _MOST_BYTES)
    except Rejected:
        return _UNREADABLE
    if text is None:
        return _NO_TEXT.format(content_type=file.ref.content_type, size_bytes=file.ref.size_bytes)
    return _fitting(text, file.ref, max(room_tokens, _LEAST_TOKENS))


def _fitting(text: str, ref: ArtifactRef, room_tokens: int) -> str:
    tokens = estimated_tokens(text)
    shown = text if tokens <= room_tokens else text[: int(len(text) * room_tokens / tokens)].rpartition(" ")[0]
    size = len(shown.encode())
    return shown if size >= ref.size_bytes or shown == text else shown + _CUT.format(shown=size, size=ref.size_bytes)
