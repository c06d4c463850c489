"""Open talks: what this instance keeps in memory of the dialogues that it leads, so that an answer reads nothing."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cachetools import TLRUCache

from agents.models.conversation import last_complete, model_messages
from agents.models.language_model import ModelMessage
from bus_schema.conversations import Saved
from bus_schema.dialogue import DialogueMessage
from bus_schema.history import ChatHistory, ChatMessage, HistoryMessage, chat_key
from mindbus.sdk.conversations import Conversations, HistoryClient
from mindbus.sdk.recall import ContextItem, UserContexts

# Enough to see what a message answers; what was said before that is found by its id.
_RECENT_MESSAGES = 6
_MAX_BYTES = 128 * 1024**2
# Of a message without its text, as it is stored and as a model is shown it.
_MESSAGE_BYTES = 1600
# Whoever changes what is kept here says so; should that be lost, it is read anew after so long.
_MAX_AGE_S = 60.0


@dataclass(frozen=True)
class HistoryWindow:
    """The last messages of a chat's history with their ids, and the version of the history that ends with them.

    `shown` are the messages as a model is shown them.
    """

    messages: Sequence[ChatMessage]
    ids: Sequence[str]
    version: str | None
    shown: Sequence[ModelMessage]

    @classmethod
    def of(cls, history: ChatHistory) -> "HistoryWindow":
        messages = history.messages
        return cls(messages, history.message_ids or (), history.version, model_messages(messages))

    def with_messages(self, added: Sequence[HistoryMessage], version: str, most: int) -> "HistoryWindow":
        """The window after messages were appended, of at most so many; it begins with the user."""
        messages, ids = [*self.messages, *added], [*self.ids, *(message.id for message in added)]
        shown = [*self.shown, *model_messages(added)]
        if len(messages) > most:
            messages = list(last_complete(messages, most))
        kept = len(messages)
        return HistoryWindow(messages, ids[len(ids) - kept :], version, shown[len(shown) - kept :])


@dataclass(frozen=True)
class OpenTalk:
    """A dialogue as it is stored: its last messages, the number of all if known, the window, items about the user."""

    recent: Sequence[DialogueMessage]
    position: int | None
    window: HistoryWindow
    picture: Sequence[ContextItem]
    read_at: float
    generation: int

    @property
    def size(self) -> int:
        """Estimated bytes in memory."""
        texts = [each.content or "" for each in self.recent] + [each.content or "" for each in self.window.messages]
        return _MESSAGE_BYTES * (1 + len(texts)) + sum(map(len, texts))

    def precedes(self, saved: Saved) -> bool:
        """Whether a message that was saved follows the last one known here."""
        return saved.is_new and (self.position is None or saved.position == self.position + 1)

    def after(self, said: DialogueMessage, answer: DialogueMessage, saved: Saved, window: HistoryWindow) -> "OpenTalk":
        """The talk after an exchange, whose answer was saved."""
        before = [each for each in self.recent if each.message_id != said.message_id]
        recent = [*before, said, answer][-_RECENT_MESSAGES:]
        return replace(self, recent=recent, position=saved.position, window=window)


class OpenTalks:
    """Talks by user, the least recently used dropped first.

    All messages of a user come to one instance, in order, and whoever else changes a talk says so by a command. What
    other instances may have been told meanwhile is not known after a pause: `forget` everything then.
    """

    def __init__(
        self,
        conversations: Conversations,
        histories: HistoryClient,
        contexts: UserContexts,
        context_tokens: int,
        most_messages: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._conversations, self._histories, self._contexts = conversations, histories, contexts
        self._context_tokens, self.most_messages = context_tokens, most_messages
        self._monotonic = monotonic
        self._generation = 0
        self._talks: TLRUCache[str, OpenTalk] = TLRUCache(
            _MAX_BYTES, lambda _user_id, talk, _now: talk.read_at + _MAX_AGE_S, monotonic, lambda talk: talk.size
        )

    async def open(self, user_id: str) -> OpenTalk:
        """The talk, which is read where it is not known; `keep` it after the exchange.

        Raises Rejected, TemporaryFailure, BusUnavailable.
        """
        return self._talks.pop(user_id, None) or await self.read(user_id)

    async def read(self, user_id: str) -> OpenTalk:
        """The talk as it is stored now. Raises as `open` does."""
        generation, now = self._generation, self._monotonic()
        recent, history, picture = await asyncio.gather(
            self._conversations.recent(user_id, _RECENT_MESSAGES),
            self._histories.window_of_tokens(chat_key(user_id), self._context_tokens),
            self._contexts.of(user_id),
        )
        return OpenTalk(recent, None, HistoryWindow.of(history), picture, now, generation)

    def keep(self, user_id: str, talk: OpenTalk) -> None:
        """Keep a talk for the next exchange, unless something was forgotten since it was read."""
        if talk.generation == self._generation and talk.size < _MAX_BYTES:
            self._talks[user_id] = talk

    def forget(self, user_id: str | None = None) -> None:
        """Read the talk of a user, or every talk, anew."""
        if user_id is None:
            self._generation += 1
            self._talks.clear()
        else:
            self._talks.pop(user_id, None)
