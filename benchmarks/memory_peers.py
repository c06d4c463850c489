"""Memories that are compared: MindBus's own and others, all in this process but Mem0, all with the same vectors."""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, IndexConfig, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, FieldCondition, Filter, MatchValue, PointStruct, VectorParams

from benchmarks.locomo_baselines import messages_of
from benchmarks.locomo_data import Conversation
from benchmarks.memory_turns import KnownVectors, Turn, turns_of
from benchmarks.storage_children import IN_OWN_ENVIRONMENT, Child, ChildFailed, child
from bus_schema.episodes import raw_log_id_of
from bus_schema.glm import RetrieveKems
from bus_schema.identities import Principal
from bus_schema.kem import KemDraft
from bus_schema.kem_query import KemQuery
from bus_schema.lsm_search import SearchEpisodes
from config.settings import FleetSettings
from memory.glm.service import GlobalMemory, database_of, open_vector_index
from memory.glm.tables import MIGRATIONS as GLM_MIGRATIONS
from memory.lsm.recorder import Utterance
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import MIGRATIONS as LSM_MIGRATIONS
from mindbus.bus.worker import utc_now
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade

_BATCH = 500
_OWNER = Principal("agent.bench")
_MEM0 = (*IN_OWN_ENVIRONMENT, str(Path(__file__).with_name("mem0-requirements.txt")), "python")


class CannotRun(Exception):
    """A memory that cannot be had on this machine, and why."""


@dataclass(frozen=True)
class Asked:
    """A question of a talk; the first `count` turns are wanted, about as long as so many words."""

    chat_id: str
    text: str
    count: int
    words: int


class Contestant(Protocol):
    """A memory that has nothing yet; both methods return what took how long in seconds."""

    async def fill(self, talks: Sequence[Conversation]) -> float:
        """Store every turn, until it can be found."""

    async def ask(self, question: Asked) -> tuple[list[str], float]:
        """Ids of the turns, the best first."""


class SharedMemory:
    """MindBus's `glm` as its worker has it: units with a vector each, found by words and meaning, or by meaning."""

    def __init__(self, memory: GlobalMemory, vectors: KnownVectors, *, by_words: bool) -> None:
        self._memory, self._vectors, self._by_words = memory, vectors, by_words

    async def fill(self, talks: Sequence[Conversation]) -> float:
        turns = [turn for talk in talks for turn in turns_of(talk)]
        embedded = await self._vectors.passages([turn.text for turn in turns])
        began = time.perf_counter()
        for first in range(0, len(turns), _BATCH):
            drafts = [
                KemDraft(id=kem_id_of(turn), content=turn.text, metadata={"chat": turn.chat_id}, embeddings=vector)
                for turn, vector in zip(turns[first : first + _BATCH], embedded[first : first + _BATCH], strict=True)
            ]
            async with self._memory.database.at_hand():
                await self._memory.store.store_all(drafts, _OWNER)
            await self._memory.relay.relay()
        return time.perf_counter() - began

    async def ask(self, question: Asked) -> tuple[list[str], float]:
        wanted: dict[str, Any] = {"metadata_filters": {"chat": question.chat_id}}
        began = time.perf_counter()
        if self._by_words:
            wanted["text_query"] = question.text
        else:
            wanted["embedding_query"] = await self._vectors.query(question.text)
        query = RetrieveKems(query=KemQuery.model_validate(wanted), page_size=question.count)
        found = await self._memory.search.page(query, _OWNER)
        return [item.kem.id.removeprefix("kem_") for item in found.items], time.perf_counter() - began


def kem_id_of(turn: Turn) -> str:
    return f"kem_{turn.turn_id}"


@asynccontextmanager
async def shared_memory(folder: Path, vectors: KnownVectors, *, by_words: bool) -> AsyncIterator[Contestant]:
    settings = FleetSettings(data_dir=folder, log_level="ERROR")
    database = database_of(settings)
    await upgrade(database, GLM_MIGRATIONS)
    memory = GlobalMemory(database, open_vector_index(settings, "glm", vectors.space), vectors, utc_now)
    await memory.start()
    yield SharedMemory(memory, vectors, by_words=by_words)
    await memory.close()
    await database.dispose()


class EpisodeMemory:
    """MindBus's `lsm`: it returns turns of episodes up to a number of words, so many as the turns wanted have."""

    def __init__(self, memory: LongTermMemory, search: EpisodeSearch) -> None:
        self._memory, self._search, self._asked = memory, search, 0
        self._ended: dict[str, Any] = {}
        self._turns: dict[str, str] = {}

    async def fill(self, talks: Sequence[Conversation]) -> float:
        began = time.perf_counter()
        for talk in talks:
            for session in talk.sessions:
                async with self._memory.database.at_hand():
                    await self._memory.recorder.record(talk.chat_id, list(map(Utterance.from_command, session)))
        while await self._search.backlog.step():
            pass
        took_s = time.perf_counter() - began
        self._ended = {talk.chat_id: talk.ended_at for talk in talks}
        pairs = ((talk.chat_id, str(message.message_id)) for talk in talks for message in messages_of(talk))
        self._turns = {raw_log_id_of(chat_id, message_id): message_id for chat_id, message_id in pairs}
        return took_s

    async def ask(self, question: Asked) -> tuple[list[str], float]:
        at = self._ended[question.chat_id] + timedelta(days=1)
        self._asked += 1
        query = SearchEpisodes(query=question.text, chat_id=question.chat_id, budget_words=question.words, touch=False)
        began = time.perf_counter()
        found = await self._search.find(query, at, f"srch_{self._asked}", "user.bench")
        took_s = time.perf_counter() - began
        return [self._turns[turn.raw_log_id] for episode in found.episodes for turn in episode.turns], took_s


@asynccontextmanager
async def episode_memory(folder: Path, vectors: KnownVectors) -> AsyncIterator[Contestant]:
    settings = FleetSettings(data_dir=folder, log_level="ERROR")
    database = Database(settings.database_of("lsm"), "lsm")
    await upgrade(database, LSM_MIGRATIONS)
    memory = LongTermMemory(database, settings, utc_now)

    async def opening() -> KnownVectors:
        return vectors

    search = EpisodeSearch(memory, settings, opening)
    search.embeddings.embedder = vectors
    yield EpisodeMemory(memory, search)
    await search.close()
    await database.dispose()


class Qdrant:
    """Qdrant's client without a server: a collection in a folder."""

    def __init__(self, client: QdrantClient, vectors: KnownVectors) -> None:
        self._client, self._vectors = client, vectors

    async def fill(self, talks: Sequence[Conversation]) -> float:
        params = VectorParams(size=self._vectors.space.dim, distance=Distance.COSINE)
        self._client.create_collection("turns", vectors_config=params)
        points = [
            PointStruct(
                id=number,
                vector=self._vectors.known(turn.text, is_query=False),
                payload={"turn": turn.turn_id, "chat": turn.chat_id, "text": turn.text},
            )
            for number, turn in enumerate(turn for talk in talks for turn in turns_of(talk))
        ]
        began = time.perf_counter()
        for first in range(0, len(points), _BATCH):
            self._client.upsert("turns", points[first : first + _BATCH])
        return time.perf_counter() - began

    async def ask(self, question: Asked) -> tuple[list[str], float]:
        of_chat = Filter(must=[FieldCondition(key="chat", match=MatchValue(value=question.chat_id))])
        began = time.perf_counter()
        vector = self._vectors.known(question.text, is_query=True)
        found = self._client.query_points("turns", query=vector, query_filter=of_chat, limit=question.count)
        took_s = time.perf_counter() - began
        return [str((point.payload or {})["turn"]) for point in found.points], took_s


@asynccontextmanager
async def qdrant(folder: Path, vectors: KnownVectors) -> AsyncIterator[Contestant]:
    client = QdrantClient(path=str(folder))
    yield Qdrant(client, vectors)
    client.close()


class KnownEmbeddings(Embeddings):
    """The same vectors, as LangGraph asks for them."""

    def __init__(self, vectors: KnownVectors) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vectors.known(text, is_query=False) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vectors.known(text, is_query=True)


class LangGraphStore:
    """A store of LangGraph: a namespace for each talk."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    async def fill(self, talks: Sequence[Conversation]) -> float:
        puts = [PutOp((turn.chat_id,), turn.turn_id, {"text": turn.text}) for talk in talks for turn in turns_of(talk)]
        began = time.perf_counter()
        for first in range(0, len(puts), _BATCH):
            self._store.batch(puts[first : first + _BATCH])
        return time.perf_counter() - began

    async def ask(self, question: Asked) -> tuple[list[str], float]:
        began = time.perf_counter()
        found = self._store.search((question.chat_id,), query=question.text, limit=question.count)
        took_s = time.perf_counter() - began
        return [item.key for item in found], took_s


def _index(vectors: KnownVectors) -> Any:
    return IndexConfig(dims=vectors.space.dim, embed=KnownEmbeddings(vectors), fields=["text"])


@asynccontextmanager
async def langgraph_in_memory(_folder: Path, vectors: KnownVectors) -> AsyncIterator[Contestant]:
    yield LangGraphStore(InMemoryStore(index=_index(vectors)))


@asynccontextmanager
async def langgraph_sqlite(folder: Path, vectors: KnownVectors) -> AsyncIterator[Contestant]:
    """Raises CannotRun."""
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        raise CannotRun("this Python was built without extensions of SQLite, which sqlite-vec is")
    await asyncio.to_thread(folder.mkdir)
    with SqliteStore.from_conn_string(str(folder / "store.sqlite"), index=_index(vectors)) as store:
        store.setup()
        yield LangGraphStore(store)


class Mem0:
    """Mem0 in a process of its own, which is told all vectors beforehand and takes the time itself."""

    def __init__(self, process: Child, vectors: KnownVectors) -> None:
        self._process, self._vectors = process, vectors

    async def fill(self, talks: Sequence[Conversation]) -> float:
        turns = [turn for talk in talks for turn in turns_of(talk)]
        vectors = {turn.text: self._vectors.known(turn.text, is_query=False) for turn in turns}
        await self._process.tell(json.dumps({"vectors": vectors}))
        items = [[turn.chat_id, turn.turn_id, turn.text] for turn in turns]
        return float(json.loads(await self._process.answer(json.dumps({"items": items})))["seconds"])

    async def ask(self, question: Asked) -> tuple[list[str], float]:
        vector = self._vectors.known(question.text, is_query=True)
        order = {"chat_id": question.chat_id, "text": question.text, "vector": vector, "count": question.count}
        found = json.loads(await self._process.answer(json.dumps(order)))
        return found["found"], float(found["seconds"])


@asynccontextmanager
async def mem0(folder: Path, vectors: KnownVectors) -> AsyncIterator[Contestant]:
    """Raises CannotRun."""
    async with child("mem0", "-m", "benchmarks.memory_mem0", python=_MEM0) as process:
        try:
            await process.tell(json.dumps([str(folder), vectors.space.dim]))
            await process.wait_ready()
        except (ChildFailed, OSError) as failure:
            raise CannotRun("its environment cannot be installed, or it does not start") from failure
        yield Mem0(process, vectors)


Opening = Callable[[Path, KnownVectors], AbstractAsyncContextManager[Contestant]]
CONTESTANTS: Mapping[str, Opening] = {
    "mindbus glm": partial(shared_memory, by_words=True),
    "mindbus glm, vectors alone": partial(shared_memory, by_words=False),
    "mindbus lsm": episode_memory,
    "qdrant local": qdrant,
    "langgraph in memory": langgraph_in_memory,
    "langgraph sqlite": langgraph_sqlite,
    "mem0": mem0,
}
# Whether what was stored survives: rows that were confirmed are on disk, or not.
DURABILITY = {
    "mindbus glm": "synced",
    "mindbus glm, vectors alone": "synced",
    "mindbus lsm": "synced",
    "qdrant local": "SQLite",
    "langgraph in memory": "none",
    "langgraph sqlite": "SQLite",
    "mem0": "SQLite",
}
