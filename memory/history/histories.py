"""Histories of conversations, in OpenAI's format, as models are shown them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from cachetools import LRUCache

from bus_schema.history import ChatMessage, HistoryMessage, HistorySummary, subagent_of
from language.words import MESSAGE_TOKENS, estimated_tokens
from memory.history.store import (
    BrokenHistory,
    HistoryChange,
    HistoryStore,
    as_array,
    digest_of,
    dump_message,
    parse_messages,
)

MessageT = TypeVar("MessageT", bound=ChatMessage)
_NOWHERE = -1


def stored_tail(messages: Sequence[MessageT], limit: int) -> tuple[MessageT, ...]:
    """The last `limit` messages to be kept; tool results whose call is cut off are dropped too."""
    if len(messages) <= limit:
        return tuple(messages)
    first = len(messages) - limit
    calls, _open = _calls_of(messages)
    return tuple(messages[place] for place in range(first, len(messages)) if calls[place] >= first)


def model_tail(messages: Sequence[MessageT], limit: int) -> tuple[MessageT, ...]:
    """The last `limit` messages for a model, without incomplete tool calls: a model needs call and results together."""
    first = max(0, len(messages) - limit)
    calls, unanswered = _calls_of(messages)
    places = range(first, len(messages))
    return tuple(messages[place] for place in places if calls[place] >= first and calls[place] not in unanswered)


def _calls_of(messages: Sequence[ChatMessage]) -> tuple[list[int], set[int]]:
    """For each message the position of its call, its own if it is no result; and the calls without all results.

    Results follow their call directly: after another message they answer nothing.
    """
    calls: list[int] = []
    unanswered: set[int] = set()
    waiting: dict[str, int] = {}
    for place, message in enumerate(messages):
        if message.role == "tool":
            calls.append(waiting.pop(message.tool_call_id or "", _NOWHERE))
            continue
        unanswered.update(waiting.values())
        waiting = {call.id: place for call in message.tool_calls or ()}
        calls.append(place)
    return calls, unanswered | set(waiting.values())


_CACHE_BYTES = 64 * 1024**2
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Added:
    """Messages that were new, the number of messages kept now, the versions of the history before and after."""

    messages: tuple[HistoryMessage, ...]
    length: int
    preceding: str
    version: str


@dataclass(frozen=True, slots=True)
class HistoryEnd:
    """Last messages of a history, for a model; the number of all messages; the version of the history."""

    messages: tuple[HistoryMessage, ...]
    length: int
    version: str


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """Numbers of messages that are kept per key and shown to a model (spec 001)."""

    max_history: int = 100
    chat_window: int = 10
    subagent_window: int = 50

    def window_of(self, key: str) -> int:
        return self.chat_window if subagent_of(key) is None else self.subagent_window


@dataclass(frozen=True)
class _Kept:
    messages: tuple[HistoryMessage, ...] = ()
    digest: str = ""
    size: int = 1

    # Stored forms of messages by id, as far as they are known.
    dumped: Mapping[str, bytes] = field(default_factory=dict)

    @cached_property
    def ids(self) -> frozenset[str]:
        return frozenset(message.id for message in self.messages)


class HistoryRepository:
    """Histories over a store, with a cache that is validated against the store's digest before every use."""

    def __init__(self, store: HistoryStore, limits: HistoryLimits, cache_bytes: int = _CACHE_BYTES) -> None:
        self._store, self._limits = store, limits
        self._cached: LRUCache[str, _Kept] = LRUCache(cache_bytes, getsizeof=lambda history: history.size)

    async def append(self, key: str, messages: Sequence[HistoryMessage]) -> Added:
        """Append messages, all or none, each once. Raises BrokenHistory."""
        removed_ids: set[str] = set()
        history = self._cached.get(key) or await self._read(key)
        while True:
            new = _new(messages, history.ids | removed_ids)
            if not new:
                before, history = history, await self._read(key)
                if history.digest == before.digest:
                    return Added((), len(history.messages), history.digest, history.digest)
                continue
            after = stored_tail((*history.messages, *new), self._limits.max_history)
            outcome = await self._replace(key, history, after, new)
            if isinstance(outcome, _Kept):
                return Added(new, len(after), history.digest, outcome.digest)
            removed_ids |= outcome
            # A lost race was won by another writer, so there is always progress.
            if not outcome:
                history = await self._read(key)

    async def end(self, key: str, window: int | None = None, tokens: int | None = None) -> HistoryEnd:
        """Last messages for a model, by their number or their estimated tokens. Raises BrokenHistory."""
        history = await self._read(key)
        stored = history.messages
        most = window or self._limits.window_of(key) if tokens is None else _fitting(stored, tokens)
        return HistoryEnd(model_tail(stored, most), len(stored), history.digest)

    async def whole(self, key: str) -> tuple[HistoryMessage, ...]:
        """All messages. Raises BrokenHistory."""
        return (await self._read(key)).messages

    async def page(self, chat_id: str | None, after: str, limit: int) -> list[HistorySummary]:
        """Summaries of the histories after a key, in order."""
        return [await self._summary(key) for key in await self._store.keys(chat_id, after, limit)]

    async def clear(self, key: str) -> int:
        """Delete a history, a broken one too; returns its number of messages."""
        while True:
            try:
                history = await self._read(key)
            except BrokenHistory:
                history = _Kept(digest=digest_of(await self._store.read(key, None) or b""))
            if isinstance(await self._replace(key, history, (), ()), _Kept):
                return len(history.messages)

    async def forget(self, chat_id: str | None) -> dict[str, int]:
        """Delete the histories of a chat, or all; returns the numbers of histories and messages."""
        counts = {"histories": 0, "messages": 0}
        after = ""
        while keys := await self._store.keys(chat_id, after, _PAGE):
            for key in keys:
                counts["messages"] += await self.clear(key)
            counts["histories"] += len(keys)
            after = keys[-1]
        return counts

    async def _read(self, key: str) -> _Kept:
        cached = self._cached.get(key)
        text = await self._store.read(key, cached.digest if cached else None)
        if text is None and cached is not None:
            return cached
        return self._cache(key, text or b"", parse_messages(key, text or b""), {})

    async def _replace(
        self, key: str, history: _Kept, after: tuple[HistoryMessage, ...], new: Iterable[HistoryMessage]
    ) -> _Kept | frozenset[str]:
        """The history from now on if done, else the ids of messages that were there before."""
        dumped = {message.id: history.dumped.get(message.id) or dump_message(message) for message in after}
        # Another program may have written several messages under one id.
        has_own_ids = len(dumped) == len(after)
        text = as_array(dumped.values() if has_own_ids else map(dump_message, after))
        added = tuple(message.id for message in new)
        dropped = (history.ids | set(added)) - dumped.keys()
        removed_ids = await self._store.replace(HistoryChange(key, history.digest, text, added, tuple(sorted(dropped))))
        if removed_ids is not None:
            return removed_ids
        return self._cache(key, text, after, dumped if has_own_ids else {})

    def _cache(self, key: str, text: bytes, messages: tuple[HistoryMessage, ...], dumped: Mapping[str, bytes]) -> _Kept:
        history = _Kept(messages, digest_of(text), 2 * len(text) + len(key), dumped)
        if history.size <= self._cached.maxsize:
            self._cached[key] = history
        else:
            self._cached.pop(key, None)
        return history

    async def _summary(self, key: str) -> HistorySummary:
        try:
            messages = await self.whole(key)
        except BrokenHistory:
            return HistorySummary(key=key, length=None)
        return HistorySummary(key=key, length=len(messages), last=messages[-1].timestamp if messages else None)


def as_shown(message: HistoryMessage) -> ChatMessage:
    """The message without what no model is shown."""
    return ChatMessage.model_construct(**{name: getattr(message, name) for name in ChatMessage.model_fields})


def _fitting(messages: Sequence[HistoryMessage], tokens: int) -> int:
    """Number of last messages that fit the tokens, with the arguments of their tool calls."""
    for count, message in enumerate(reversed(messages)):
        texts = [message.content or "", *(call.function.arguments for call in message.tool_calls or ())]
        tokens -= MESSAGE_TOKENS + sum(map(estimated_tokens, texts))
        if tokens < 0:
            return count
    return len(messages)


def _new(messages: Iterable[HistoryMessage], known_ids: Collection[str]) -> tuple[HistoryMessage, ...]:
    new: dict[str, HistoryMessage] = {}
    for message in messages:
        if message.id not in known_ids:
            new.setdefault(message.id, message)
    return tuple(new.values())
