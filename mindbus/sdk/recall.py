"""Context for an agent that is about to speak or to write: items about the user, recall from memory.

Shared and long-term memory are optional: where one is away, slow or was never started, nothing is found, and it is not
asked again for a while, so that not everybody waits for it in vain.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bus_schema.agent_data import GetAgentData, PutAgentData
from bus_schema.episodes import SearchId, raw_log_id_of
from bus_schema.glm import FoundKem, RetrieveKems
from bus_schema.kem_query import KemQuery, NoneOf
from bus_schema.lsm_search import (
    MAX_BUDGET_WORDS,
    MAX_EXCLUDED,
    MAX_QUERY_CHARS,
    Feedback,
    FoundEpisode,
    FoundEpisodes,
    GetHotEpisodes,
    SearchEpisodes,
)
from bus_schema.message_parts import MemoryAbsence
from bus_schema.messages import Query
from mindbus.bus.client import Client
from mindbus.bus.sender import NotDelegated
from mindbus.bus.worker import utc_now
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.logs import logger
from mindbus.sdk.conversations import refresh_dialogue
from mindbus.sdk.errors import CircuitOpen, MemoryAway, MemoryFailed
from mindbus.sdk.requests import CircuitBreaker, ResultT, in_id_scope, items_of, request_in_scope

_AGENT, _NAMESPACE = "context_manager", "pictures"
_MAX_QUESTION_CHARS = 2000
_PAUSE_S = 15.0
# Budgets of the episodes that answer the question, and of the current ones.
_FOUND_WORDS, _HOT_WORDS = 600, 150
# Of a search that seems to have no answer: it often has, among its best.
_DOUBTFUL_WORDS = 600
_REPORT_WITHIN = timedelta(minutes=10)


class ContextItem(BaseModel):
    """Something worth keeping in mind; `id` names its source."""

    model_config = ConfigDict(frozen=True)
    id: str
    text: str = Field(max_length=1000)


RecalledT = TypeVar("RecalledT")
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
        """Replace a user's items; the assistant answers the user's next message with them."""
        value = _ITEMS.dump_python(tuple(items), mode="json")
        await request_in_scope(self._bus, PutAgentData(agent=_AGENT, namespace=_NAMESPACE, key=user_id, value=value))
        await refresh_dialogue(self._bus, user_id)


@dataclass(frozen=True)
class RecalledText:
    """A turn with its day and its speaker, or the summary of an episode; uncertain where it may not bear on it."""

    id: str
    text: str
    episode_id: str
    time: datetime
    is_uncertain: bool = False


@dataclass(frozen=True)
class Recollection(Generic[RecalledT]):
    """Recalled items; `absence` tells why there are none, where memory did not answer.

    `result_ids` are the turns, and the episodes with a summary, that the search `search_id` returned.
    """

    items: tuple[RecalledT, ...] = ()
    absence: MemoryAbsence | None = None
    search_id: SearchId | None = None
    result_ids: Collection[str] = ()


class _Recall:
    _memory: ClassVar[str]

    def __init__(self, bus: Client, within_s: float, breaker: CircuitBreaker | None = None) -> None:
        self._bus, self._within_s = bus, within_s
        self._breaker = breaker or CircuitBreaker(opens_after=1, opens_for_s=_PAUSE_S)

    async def _ask(
        self, identity: str, query: Callable[[], Query[ResultT]]
    ) -> tuple[ResultT | None, MemoryAbsence | None]:
        """The result; none where memory is away or late. The query is made only if it is asked."""
        try:
            with self._breaker.guard():
                return await self._request(query(), identity), None
        except CircuitOpen:
            # That it is away was logged when it was last asked.
            return None, "away"
        except MemoryAway as error:
            logger().warning(f"{self._memory} memory did not answer", reason=str(error))
            return None, "late" if isinstance(error.__cause__, NoReply) else "away"

    async def _request(self, query: Query[ResultT], identity: str) -> ResultT:
        try:
            bus = self._bus.acting_as(identity)
        except NotDelegated:
            # A role of one's own speaks for itself alone, and finds what it may read.
            bus = self._bus
        try:
            return await in_id_scope(None, lambda: bus.request(query, timeout_s=self._within_s))
        except (BusUnavailable, ReplyError) as error:
            raise MemoryFailed(str(error)) from error


class KemRecall(_Recall):
    """Asks in the name of a person, so that nothing is found but what they may read."""

    _memory = "shared"

    async def about(self, question: str, identity: str, limit: int = 8) -> tuple[FoundKem, ...]:
        """The nearest units, best first, without superseded ones; nothing where `within_s` is 0."""
        return (await self.recall(question, identity, limit)).items

    async def recall(self, question: str, identity: str, limit: int = 8) -> Recollection[FoundKem]:
        """As `about`, with the reason where shared memory did not answer."""
        text = question.strip()[:_MAX_QUESTION_CHARS]
        if not text or not self._within_s:
            return Recollection()

        def query() -> RetrieveKems:
            standing = KemQuery(text_query=text, metadata_filters=NoneOf(NOT={"status": "superseded"}))
            return RetrieveKems(query=standing, page_size=limit, explain=True)

        page, absence = await self._ask(identity, query)
        return Recollection(() if page is None else page.items, absence)


class EpisodeRecall(_Recall):
    """Turns of a chat that the model is not shown anyway. Recalling touches nothing; only `report_used` does."""

    _memory = "long-term"

    async def about(
        self, question: str, chat_id: str, shown: Iterable[str] = (), budget_words: int = _FOUND_WORDS
    ) -> Recollection[RecalledText]:
        """Texts that may answer the question, best first, then the current episodes; none where `within_s` is 0.

        `shown` are the ids of the messages that are left out; `budget_words` is for the texts that may answer, with 0
        of them no search is made.
        """
        text = question.strip()[:MAX_QUERY_CHARS]
        if not text or not self._within_s:
            return Recollection()

        def query() -> Query[FoundEpisodes]:
            exclude = tuple(raw_log_id_of(chat_id, each) for each in [*shown][-MAX_EXCLUDED:])
            if budget_words <= 0:
                return GetHotEpisodes(chat_id=chat_id, budget_words=_HOT_WORDS, exclude=exclude)
            return SearchEpisodes(
                query=text,
                chat_id=chat_id,
                budget_words=min(budget_words, MAX_BUDGET_WORDS),
                doubtful_words=_DOUBTFUL_WORDS,
                hot_words=_HOT_WORDS,
                exclude=exclude,
                touch=False,
            )

        found, absence = await self._ask(_identity(chat_id), query)
        if found is None:
            return Recollection(absence=absence)
        # Found in the order of time where the question asks for one; a prompt has room for the best.
        best_first = sorted(found.episodes, key=lambda each: -each.score)
        result = tuple(_texts(best_first, is_uncertain=found.confidence != "found"))
        current = _texts(found.hot, is_uncertain=False)
        # The question itself may have been asked before.
        texts = {each.id: each for each in (*result, *current) if not each.text.endswith(f"\n{text}")}
        result_ids = {each.id for each in result} if budget_words > 0 else ()
        return Recollection(tuple(texts.values()), None, found.search_id, result_ids)

    async def report_used(self, search_id: SearchId, chat_id: str, raw_log_ids: Sequence[str]) -> None:
        """Report the turns that an answer used; their episodes count as accessed. Nothing where the bus is away."""
        feedback = Feedback(search_id=search_id, used=tuple(raw_log_ids), touch=True)
        try:
            bus = self._bus.acting_as(_identity(chat_id))
            await in_id_scope(search_id, lambda: bus.send(feedback, deadline=utc_now() + _REPORT_WITHIN))
        except BusUnavailable as error:
            logger().warning("used turns not reported", reason=str(error))


def _identity(chat_id: str) -> str:
    return f"user.{chat_id}"


def _texts(episodes: Sequence[FoundEpisode], *, is_uncertain: bool) -> Iterator[RecalledText]:
    for episode in episodes:
        for turn in episode.turns:
            text = f"{turn.time:%Y-%m-%d}, {turn.speaker or turn.role}\n{turn.content}"
            yield RecalledText(turn.raw_log_id, text, episode.episode_id, turn.time, is_uncertain)
    for episode in episodes:
        if episode.text is not None:
            text = f"{episode.started_at:%Y-%m-%d}\n{episode.text}"
            yield RecalledText(episode.episode_id, text, episode.episode_id, episode.started_at, is_uncertain)
