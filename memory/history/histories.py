"""Conversations as a model is shown them: appended to by many, seen alike by all."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cachetools import LRUCache

from bus_schema.history import ChatMessage, HistoryMessage, HistorySummary, subagent_of
from memory.history.errors import BrokenHistory
from memory.history.store import HistoryChange, HistoryStore, digest_of, dump_messages, parse_messages

MessageT = TypeVar("MessageT", bound=ChatMessage)
_NOWHERE = -1


def kept_end(messages: Sequence[MessageT], most: int) -> tuple[MessageT, ...]:
    """What is kept where there is room for `most`; a call that would lose its place goes with all its results."""
    if len(messages) <= most:
        return tuple(messages)
    first = len(messages) - most
    calls, _open = _calls_of(messages)
    return tuple(messages[place] for place in range(first, len(messages)) if calls[place] >= first)


def shown_end(messages: Sequence[MessageT], most: int) -> tuple[MessageT, ...]:
    """What a model is shown, who takes no call without all its results, no result without its call."""
    first = max(0, len(messages) - most)
    calls, unanswered = _calls_of(messages)
    places = range(first, len(messages))
    return tuple(messages[place] for place in places if calls[place] >= first and calls[place] not in unanswered)


def _calls_of(messages: Sequence[ChatMessage]) -> tuple[list[int], set[int]]:
    """For each message the place of the call that it goes with, its own if it is no result; the calls left unanswered.

    Results follow their call at once: what comes after another message answers nothing any more.
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
    """What is new, how many messages are kept now."""

    messages: tuple[HistoryMessage, ...]
    length: int


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much is kept under a key, how much of it a model is shown (spec 001)."""

    max_history: int = 100
    chat_window: int = 10
    subagent_window: int = 50

    def window_of(self, key: str) -> int:
        """How much of what is kept under the key is shown to whoever does not say."""
        return self.chat_window if subagent_of(key) is None else self.subagent_window


@dataclass(frozen=True, slots=True)
class _Kept:
    messages: tuple[HistoryMessage, ...] = ()
    digest: str = ""
    size: int = 1
    ids: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", frozenset(message.id for message in self.messages))


class HistoryRepository:
    """What it has read stays at hand; before any use the store says whether it is still so, and nothing else may be."""

    def __init__(self, store: HistoryStore, limits: HistoryLimits, cache_bytes: int = _CACHE_BYTES) -> None:
        self._store, self._limits = store, limits
        self._at_hand: LRUCache[str, _Kept] = LRUCache(cache_bytes, getsizeof=lambda kept: kept.size)

    async def append(self, key: str, messages: Sequence[HistoryMessage]) -> Added:
        """Add at the end, all or none, each message once. Raises BrokenHistory."""
        gone: set[str] = set()
        kept = self._at_hand.get(key) or await self._read(key)
        while True:
            new = _new(messages, kept.ids | gone)
            if not new:
                before, kept = kept, await self._read(key)
                if kept.digest == before.digest:
                    return Added((), len(kept.messages))
                continue
            after = kept_end((*kept.messages, *new), self._limits.max_history)
            outcome = await self._replace(key, kept, after, new)
            if outcome is None:
                return Added(new, len(after))
            gone |= outcome
            # Whoever lost has lost to another who won, so somebody always gets on.
            if not outcome:
                kept = await self._read(key)

    async def end(self, key: str, window: int | None) -> tuple[tuple[ChatMessage, ...], int]:
        """The last messages for a model, how many there are in all. Raises BrokenHistory."""
        kept = await self._read(key)
        shown = shown_end(kept.messages, window or self._limits.window_of(key))
        return tuple(_for_a_model(message) for message in shown), len(kept.messages)

    async def whole(self, key: str) -> tuple[HistoryMessage, ...]:
        """All that is kept. Raises BrokenHistory."""
        return (await self._read(key)).messages

    async def page(self, chat_id: str | None, after: str, limit: int) -> list[HistorySummary]:
        """What histories there are, after a key."""
        return [await self._summary(key) for key in await self._store.keys(chat_id, after, limit)]

    async def clear(self, key: str) -> int:
        """Nothing is kept any more, also if it was no history; how many messages there were."""
        while True:
            try:
                kept = await self._read(key)
            except BrokenHistory:
                kept = _Kept(digest=digest_of(await self._store.read(key, None) or b""))
            if await self._replace(key, kept, (), ()) is None:
                return len(kept.messages)

    async def forget(self, chat_id: str | None) -> dict[str, int]:
        """All histories of a chat, or all there are; how many."""
        counts = {"histories": 0, "messages": 0}
        after = ""
        while keys := await self._store.keys(chat_id, after, _PAGE):
            for key in keys:
                counts["messages"] += await self.clear(key)
            counts["histories"] += len(keys)
            after = keys[-1]
        return counts

    async def _read(self, key: str) -> _Kept:
        known = self._at_hand.get(key)
        text = await self._store.read(key, known.digest if known else None)
        if text is None and known is not None:
            return known
        return self._have(key, text or b"", parse_messages(key, text or b""))

    async def _replace(
        self, key: str, kept: _Kept, after: tuple[HistoryMessage, ...], new: Iterable[HistoryMessage]
    ) -> frozenset[str] | None:
        """None if it was done, else which messages have been there before."""
        text = dump_messages(after) if after else b""
        added = tuple(message.id for message in new)
        dropped = (kept.ids | set(added)) - {message.id for message in after}
        outcome = await self._store.replace(HistoryChange(key, kept.digest, text, added, tuple(sorted(dropped))))
        if not outcome.is_done:
            return outcome.gone
        self._have(key, text, after)
        return None

    def _have(self, key: str, text: bytes, messages: tuple[HistoryMessage, ...]) -> _Kept:
        kept = _Kept(messages, digest_of(text), len(text) + len(key))
        if kept.size <= self._at_hand.maxsize:
            self._at_hand[key] = kept
        else:
            self._at_hand.pop(key, None)
        return kept

    async def _summary(self, key: str) -> HistorySummary:
        try:
            messages = await self.whole(key)
        except BrokenHistory:
            return HistorySummary(key=key, length=None)
        return HistorySummary(key=key, length=len(messages), last=messages[-1].timestamp if messages else None)


def _new(messages: Iterable[HistoryMessage], known: Collection[str]) -> tuple[HistoryMessage, ...]:
    new: dict[str, HistoryMessage] = {}
    for message in messages:
        if message.id not in known:
            new.setdefault(message.id, message)
    return tuple(new.values())


def _for_a_model(message: HistoryMessage) -> ChatMessage:
    return ChatMessage.model_construct(**{name: getattr(message, name) for name in ChatMessage.model_fields})
