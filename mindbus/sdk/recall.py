"""Context for an agent that is about to speak or to write: items about the user, recall from memory.

Shared and long-term memory are optional: where one is away, slow or was never started, nothing is found, and it is not
asked again for a while, so that not everybody waits for it in vain.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bus_schema.agent_data import GetAgentData, PutAgentData
from bus_schema.glm import FoundKem, RetrieveKems
from bus_schema.kem_query import KemQuery, NoneOf
from bus_schema.lsm_search import MAX_QUERY_CHARS, FoundEpisodes, GetHotEpisodes, SearchEpisodes
from bus_schema.messages import Query
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.sdk.errors import MemoryAway, MemoryFailed
from mindbus.sdk.requests import CircuitBreaker, ResultT, in_id_scope, items_of, request_in_scope

_AGENT, _NAMESPACE = "context_manager", "pictures"
_MAX_QUESTION_CHARS = 2000
_PAUSE_S = 15.0
# Budgets of the episodes that answer the question, and of the current ones.
_FOUND_WORDS, _HOT_WORDS = 250, 150


class ContextItem(BaseModel):
    """Something worth keeping in mind; `id` names its source."""

    model_config = ConfigDict(frozen=True)
    id: str
    text: str = Field(max_length=1000)


_ITEMS = TypeAdapter(tuple[ContextItem, ...])


class UserContexts:
    """Context items by user, kept by storage. Raises Rejected, TemporaryFailure, BusUnavailable."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus

    async def of(self, user_id: str) -> tuple[ContextItem, ...]:
        """A user's items, the most important first."""
        page = await request_in_scope(self._bus, GetAgentData(agent=_AGENT, namespace=_NAMESPACE, key=user_id))
        return _ITEMS.validate_python(page.items[0].value) if page.items else ()

    async def users(self) -> AsyncIterator[str]:
        query = GetAgentData(agent=_AGENT, namespace=_NAMESPACE)
        async for datum in items_of(self._bus, query):
            yield datum.key

    async def replace(self, user_id: str, items: Iterable[ContextItem]) -> None:
        value = _ITEMS.dump_python(tuple(items), mode="json")
        await request_in_scope(self._bus, PutAgentData(agent=_AGENT, namespace=_NAMESPACE, key=user_id, value=value))


@dataclass(frozen=True)
class RecalledText:
    """A turn of long ago with its day and its speaker, or the summary of an episode."""

    id: str
    text: str


class _Recall:
    _memory: ClassVar[str]

    def __init__(self, bus: Client, within_s: float, breaker: CircuitBreaker | None = None) -> None:
        self._bus, self._within_s = bus, within_s
        self._breaker = breaker or CircuitBreaker(opens_after=1, opens_for_s=_PAUSE_S)

    async def _ask(self, identity: str, *queries: Query[ResultT]) -> list[ResultT]:
        """The results, none where memory is away."""
        try:
            with self._breaker.guard():
                return await asyncio.gather(*(self._request(query, identity) for query in queries))
        except MemoryAway as error:
            logger().warning(f"{self._memory} memory not asked", reason=str(error))
            return []

    async def _request(self, query: Query[ResultT], identity: str) -> ResultT:
        bus = self._bus.acting_as(identity)
        try:
            return await in_id_scope(None, lambda: bus.request(query, timeout_s=self._within_s))
        except (BusUnavailable, ReplyError) as error:
            raise MemoryFailed(str(error)) from error


class KemRecall(_Recall):
    """Asks in the name of a person, so that nothing is found but what they may read."""

    _memory = "shared"

    async def about(self, question: str, identity: str, limit: int = 8) -> tuple[FoundKem, ...]:
        """The nearest units, best first, without superseded ones; nothing where `within_s` is 0."""
        text = question.strip()[:_MAX_QUESTION_CHARS]
        if not text or not self._within_s:
            return ()
        query = KemQuery(text_query=text, metadata_filters=NoneOf(NOT={"status": "superseded"}))
        pages = await self._ask(identity, RetrieveKems(query=query, page_size=limit, explain=True))
        return tuple(item for page in pages for item in page.items)


class EpisodeRecall(_Recall):
    """Turns of a chat that are long past."""

    _memory = "long-term"

    async def about(self, question: str, chat_id: str, before: datetime) -> tuple[RecalledText, ...]:
        """Texts that answer the question, best first, then the current episodes; none where `within_s` is 0."""
        text = question.strip()[:MAX_QUERY_CHARS]
        if not text or not self._within_s:
            return ()
        search = SearchEpisodes(query=text, chat_id=chat_id, budget_words=_FOUND_WORDS, until=before)
        hot = GetHotEpisodes(chat_id=chat_id, budget_words=_HOT_WORDS, before=before)
        results = await self._ask(f"user.{chat_id}", search, hot)
        # The question itself may have been recorded already.
        return tuple({each.id: each for each in _texts(results) if not each.text.endswith(f"\n{text}")}.values())


def _texts(results: Iterable[FoundEpisodes]) -> Iterator[RecalledText]:
    for result in results:
        for episode in result.episodes if result.confidence != "nothing" else ():
            if episode.text is not None:
                yield RecalledText(episode.episode_id, f"{episode.started_at:%Y-%m-%d}\n{episode.text}")
            for turn in episode.turns:
                yield RecalledText(
                    turn.raw_log_id, f"{turn.time:%Y-%m-%d}, {turn.speaker or turn.role}\n{turn.content}"
                )
