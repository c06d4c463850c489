"""Search for episodes: the turns of all layers are searched, then grouped by episode."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from datetime import datetime
from types import SimpleNamespace
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import Content, Layer, RawTurn
from bus_schema.lsm_search import FoundEpisode, FoundEpisodes, SearchEpisodes
from config.settings import FleetSettings
from memory.lsm.rows import as_turn, has_decisions, pack_of, turns_after, with_superseded
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.embeddings import QueryEmbeddings, TurnBacklog
from memory.lsm.search.index_cache import ChatIndexCache
from memory.lsm.search.index_snapshots import IndexSnapshots
from memory.lsm.search.questions import kinds_of
from memory.lsm.search.ranking import Weights, compare, with_linked
from memory.lsm.search.results import (
    ShownTurn,
    current_first,
    found_episodes,
    newest_first,
    oldest_first,
    shown_turn,
    words_of,
)
from memory.lsm.search.search_log import FinishedSearch, SearchLog
from memory.lsm.search.tuning import WeightTuning
from memory.lsm.search.turn_search import ChatResult, choose_turns, match_query, rank_turns
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import EpisodeOfTurnRow, EpisodeRow, TurnRow
from memory.packing.decisions import decisions_of
from retrieval.embedding.embedder import Embedder
from retrieval.sequence_vectors import Similarities

_TURN = (
    *(TurnRow.id, TurnRow.role, TurnRow.content, TurnRow.time, TurnRow.speaker, TurnRow.position, TurnRow.word_count),
    TurnRow.archived,
)
_EPISODE = (
    EpisodeRow.id.label("episode_id"),
    EpisodeRow.layer,
    EpisodeRow.headline,
    EpisodeRow.started_at,
    EpisodeRow.ended_at,
    EpisodeRow.chat_id,
    EpisodeRow.last_accessed,
    EpisodeRow.access_count,
    EpisodeRow.is_anchor,
)
# Packs are the largest part of a row; only summaries need them.
_PACK = (EpisodeRow.content_warm, EpisodeRow.content_cold, EpisodeRow.model, EpisodeRow.embedding)
# The links of so many of the best turns' episodes are followed for an overview, which is spread over the chat.
_FOLLOWED = 2
# Kinds of questions whose answer is a sequence; those whose answer is sorted by time, all of it or what fits well.
_BY_TIME = frozenset({"order", "how often"})
_SORTED = _BY_TIME | {"current"}
# So many of the best episodes count as used.
_TOUCHED = 3
_MIB = 1 << 20
T = TypeVar("T")
U = TypeVar("U")

# The last turns of a chat are embedded when nobody talks; fewer vectors than this is a search by words.
_COVERED_SHARE = 0.5


class EpisodeSearch:
    """Search by words and vectors; without an embedder, or until it is open, by words alone.

    It is registered for changes of the memory's log; nothing is opened yet.
    """

    def __init__(
        self, memory: LongTermMemory, settings: FleetSettings, opening: Callable[[], Awaitable[Embedder]]
    ) -> None:
        database, self.opening, self.queries = memory.database, opening, memory.queries
        snapshots = IndexSnapshots(database, settings.data_dir / "lsm-indexes")
        limit_bytes = settings.lsm_index_mib * _MIB
        self.indexes = ChatIndexCache(database, memory.recorder.limits.gap, limit_bytes, snapshots, memory.texts)
        self.embeddings = QueryEmbeddings()
        self.backlog = TurnBacklog(database, self.embeddings, self.indexes)
        self.finder = EpisodeFinder(memory, self.indexes, self.embeddings)
        self.log = SearchLog(database, memory.reactivation)
        self.tuning = WeightTuning(database, self.indexes, self.embeddings)
        for listener in (self.indexes, self.backlog, self.log):
            memory.listeners.add(listener)

    async def find(self, query: SearchEpisodes, at: datetime, search_id: str, requester: str) -> FoundEpisodes:
        """Search with the weights in use and queue the search for the log. Raises DatabaseAway, StorageAway.

        Where every turn is excluded nothing is searched for, nothing logged.
        """
        self.backlog.note_use()
        if query.exclude and not await self.queries.has_turns(query.chat_id, query.exclude):
            return FoundEpisodes(confidence="nothing", unpacked=False, words=0, episodes=())
        search = await self.finder.find(query, at, search_id, requester, await self.tuning.weights())
        self.log.put(search)
        return search.answer

    async def embed(self) -> None:
        """Wait for turns without a vector, embed a batch of them. Raises EmbedderFailure, DatabaseAway."""
        if self.embeddings.embedder is None:
            self.embeddings.embedder = await self.opening()
            await self.backlog.delete_other_models()
        await self.backlog.step()

    async def close(self) -> None:
        """Write the queued searches, close the embedder."""
        embedder, self.embeddings.embedder = self.embeddings.embedder, None
        if embedder is not None:
            await embedder.close()
        await self.log.close()


class EpisodeFinder:
    """Searches raw turns whatever layer their episode is in; packs are returned, never searched."""

    def __init__(self, memory: LongTermMemory, indexes: ChatIndexCache, embeddings: QueryEmbeddings) -> None:
        self.database, self.rules, self.texts = memory.database, memory.rules, memory.texts
        self.indexes, self.embeddings = indexes, embeddings

    async def find(
        self, query: SearchEpisodes, at: datetime, search_id: str, requester: str, weights: Weights
    ) -> FinishedSearch:
        """Search one chat. Raises DatabaseAway; StorageAway where its index has to be built of archived turns."""
        kinds, embedding = kinds_of(query.query), asyncio.ensure_future(self.embeddings.of(query.query))
        # Let the embedder start before this task occupies the loop.
        await asyncio.sleep(0)
        allowed = await self._allowed(query)
        async with self.indexes.index(query.chat_id, self.embeddings.model) as index:
            matching = asyncio.to_thread(match_query, index, query, at, allowed)
            matches, (vector, similarities) = await _both(matching, _compared(index, embedding))
            result = ChatResult((), (), "nothing")
            if matches is not None:
                ranking = await asyncio.to_thread(rank_turns, index, query, matches, similarities, weights)
                best = [index.ids[each] for each in ranking.order[:_FOLLOWED]]
                if "overview" in kinds and (linked := await self._linked(best)):
                    ranking = await asyncio.to_thread(with_linked, index, matches, ranking, linked, weights)
                result = await asyncio.to_thread(
                    choose_turns, index, query, matches, ranking, weights, has_standing=not kinds & _SORTED
                )
            is_covered = vector is not None and index.vectors.count >= _COVERED_SHARE * len(index)
        if result.confidence == "nothing" and query.doubtful_words is not None:
            words = min(query.budget_words, query.doubtful_words)
            query = query.model_copy(update={"budget_words": words})
        packs = query.depth == "summary" or (query.depth == "auto" and "overview" in kinds)
        loaded, unreadable = await self._load(result, with_packs=packs)
        episodes = found_episodes(loaded, query, self.rules, at, with_packs=packs)
        answer = FoundEpisodes(
            search_id=search_id,
            confidence=result.confidence if episodes else "nothing",
            unpacked=any(each.turns and each.layer is not Layer.HOT for each in episodes),
            words=sum(map(words_of, episodes)),
            episodes=tuple(_ordered(episodes, kinds, newest=query.newest_first)),
            is_degraded=not is_covered,
            unreadable=unreadable,
            asks_for=tuple(kinds) if query.explain else (),
        )
        logged = [
            {"raw_log_id": turn.raw_log_id, "layer": each.layer.value} for each in episodes for turn in each.turns
        ]
        touched = [each.episode_id for each in episodes[:_TOUCHED]]
        return FinishedSearch(search_id, query, requester, at, answer, logged, touched)

    async def _allowed(self, query: SearchEpisodes) -> set[str] | None:
        """Ids of the turns in episodes of the query's layers and tags; None without such filters."""
        if not (query.layers or query.tags):
            return None
        conditions: list[ColumnElement[bool]] = [EpisodeRow.chat_id == query.chat_id]
        if query.layers:
            conditions.append(EpisodeRow.layer.in_([layer.value for layer in query.layers]))
        of_turns = (
            select(EpisodeOfTurnRow.raw_log_id, EpisodeRow.tags)
            .join(EpisodeRow, EpisodeRow.id == EpisodeOfTurnRow.episode_id)
            .where(*conditions)
        )
        tags = {tag.casefold() for tag in query.tags}
        async with self.database.reading() as session:
            rows = (await session.execute(of_turns)).all()
        return {row.raw_log_id for row in rows if tags <= {tag.casefold() for tag in row.tags}}

    async def _linked(self, raw_log_ids: Sequence[str]) -> set[str]:
        """Turns of the episodes that those of these turns continue or are related to."""
        of_turns = (
            select(EpisodeRow.continues_from, EpisodeRow.related_to)
            .join(EpisodeOfTurnRow, EpisodeOfTurnRow.episode_id == EpisodeRow.id)
            .where(EpisodeOfTurnRow.raw_log_id.in_(raw_log_ids))
        )
        async with self.database.reading() as session:
            rows = (await session.execute(of_turns)).all()
            linked = {each for row in rows for each in (row.continues_from, *row.related_to) if each is not None}
            turns = select(EpisodeOfTurnRow.raw_log_id).where(EpisodeOfTurnRow.episode_id.in_(linked))
            return set(await session.scalars(turns))

    async def _load(self, result: ChatResult, *, with_packs: bool) -> tuple[list[ShownTurn], int]:
        """The hits with their rows, exact matches in hot episodes first; number of those without a readable text."""
        hits = {hit.raw_log_id: hit for hit in result.hits}
        query = (
            select(*_TURN, *_EPISODE, *(_PACK if with_packs else ()))
            .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
            .join(EpisodeRow, EpisodeRow.id == EpisodeOfTurnRow.episode_id)
            .where(TurnRow.id.in_(hits))
        )
        async with self.database.reading() as session:
            # Plain columns need no mapper, which would only take time.
            connection = await session.connection()
            rows = {row.id: row for row in await connection.execute(query)}
            later = await self._later(session, rows.values()) if with_packs else []
        found, rows = len(rows), await self._with_texts(rows)
        # The later turns that are in the log are enough: without storage, one wait is long enough.
        if len(rows) == found:
            await self.texts.fill_if_there(later)
        by_episode = {row.episode_id: row for row in rows.values() if with_packs and row.layer != Layer.HOT}
        packs = await asyncio.to_thread(_marked_packs, by_episode, list(map(as_turn, later)))
        exact = {key for key in result.exact if key in rows and rows[key].layer == Layer.HOT}
        order = [key for key in hits if key in exact] + [key for key in hits if key not in exact]
        shown = [
            shown_turn(hits[key], row, result.weights, packs.get(row.episode_id))
            for key in order
            if (row := rows.get(key)) is not None
        ]
        return shown, found - len(rows)

    async def _with_texts(self, rows: dict[str, Any]) -> dict[str, Any]:
        """The rows with the texts of archived turns, without those whose artifact cannot be read."""
        archived = [row.id for row in rows.values() if row.archived is not None]
        if not archived:
            return rows
        texts = await self.texts.at_once(archived)
        filled = {key: SimpleNamespace(**rows[key]._asdict() | {"content": text}) for key, text in texts.items()}
        return {key: row for key, row in (rows | filled).items() if row.archived is None or key in texts}

    async def _later(self, session: AsyncSession, rows: Iterable[Any]) -> Sequence[TurnRow]:
        """Turns after the first of the warm episodes, which may supersede their decisions."""
        warm = [row for row in rows if row.layer == Layer.WARM]
        return await turns_after(session, warm[0].chat_id, min(row.ended_at for row in warm)) if warm else []


async def _both(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Results of two that work with an index at once; neither goes on with it after an error or a cancellation."""
    first, second = asyncio.ensure_future(one), asyncio.ensure_future(other)
    ended = asyncio.gather(first, second, return_exceptions=True)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        await ended
        raise
    return first.result(), second.result()


async def _compared(index: ChatIndex, embedding: Awaitable[bytes | None]) -> tuple[bytes | None, Similarities | None]:
    """The question's vector, compared as soon as it is there."""
    vector = await embedding
    return vector, await asyncio.to_thread(compare, index, vector)


def _ordered(episodes: Sequence[FoundEpisode], kinds: Set[str], *, newest: bool) -> Sequence[FoundEpisode]:
    """Best first, unless the newest are asked for, or the question asks for an order or for what holds now."""
    if newest:
        return newest_first(episodes)
    if kinds & _BY_TIME:
        return oldest_first(episodes)
    return current_first(episodes) if "current" in kinds else episodes


def _marked_packs(rows: Mapping[str, Any], later: Sequence[RawTurn]) -> dict[str, Content]:
    """Packs of the episodes by id, decisions with what has superseded them since."""
    packs = {episode_id: pack_of(row) for episode_id, row in rows.items()}
    marked = {episode_id: pack for episode_id, pack in packs.items() if has_decisions(pack)}
    times = {turn.raw_log_id: turn.time for turn in later}
    decisions = decisions_of(later) if marked else ()
    for episode_id, pack in marked.items():
        since = [each for each in decisions if times[each.raw_log_ids[0]] > rows[episode_id].ended_at]
        packs[episode_id] = with_superseded(pack, since)
    return packs
