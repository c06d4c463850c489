"""Chat index: words, vectors, speakers and times of all turns of one chat, and the cache of such indexes."""

import asyncio
import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import and_, func, select

from bus_schema.dialogue import MessageKind
from language.words import stems
from memory.lsm.log_changes import LogListener
from memory.lsm.tables import TurnRow, TurnVectorRow
from mindbus.sql.database import Database
from retrieval.bm25 import SequencePostings
from retrieval.segments import Segments
from retrieval.sequence_vectors import SequenceVectors

# Where messages do not name their speaker, the text may: «Anna: I moved to Riga.»
_SPEAKER_PREFIX = re.compile(r"([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): ")
_MIN_TURNS_OF_SPEAKER = 3
_QUESTION_END = re.compile(r"\?[)\"'»”\s]*(?:\[[^\]]*\]\s*)?$")
# Estimated memory of a turn beside its words and its vector.
_TURN_BYTES = 120


class IndexedTurn(NamedTuple):
    """A turn of the log with its word count and, if known, its vector (little-endian float32)."""

    raw_log_id: str
    time: datetime
    speaker: str | None
    content: str
    words: int
    vector: bytes | None = None


class ChatIndex:
    """Turns in the order of the dialogue, rebuilt from the log at any time."""

    def __init__(self, gap: timedelta) -> None:
        self.ids: list[str] = []
        self.positions: dict[str, int] = {}
        self.segments = Segments(gap)
        self.postings = SequencePostings(self.segments)
        self.vectors = SequenceVectors(self.segments)
        self._words: array[int] = array("I")
        self._questions = bytearray()
        self._speakers: array[int] = array("I")
        self._speaker_numbers: dict[str, int] = {"": 0}
        self._turns_of: Counter[str] = Counter()
        self._prefixes: set[str] = set()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size_bytes(self) -> int:
        return self.postings.size_bytes + self.vectors.size_bytes + _TURN_BYTES * len(self.ids)

    @property
    def words(self) -> NDArray[np.uint32]:
        """Word count of every turn, shape (turns,)."""
        return np.frombuffer(self._words, dtype=np.uint32)

    @property
    def questions(self) -> NDArray[np.uint8]:
        """1 for every turn that ends in a question, shape (turns,)."""
        return np.frombuffer(self._questions, dtype=np.uint8)

    def follows(self, time: datetime) -> bool:
        """Whether a turn of this time may be appended."""
        return not self.ids or time.timestamp() >= self.segments.times[-1]

    def add(self, turns: Iterable[IndexedTurn]) -> None:
        for turn in turns:
            self.positions[turn.raw_log_id] = len(self.ids)
            self.ids.append(turn.raw_log_id)
            speaker = turn.speaker or self._prefix_of(turn.content)
            self.segments.add(turn.time)
            # A prefix stays among the words: it may be no name.
            self.postings.add(list(stems(turn.content)))
            self._words.append(turn.words)
            self._questions.append(bool(_QUESTION_END.search(turn.content)))
            self._speakers.append(self._speaker_numbers.setdefault(speaker, len(self._speaker_numbers)))
            self._turns_of[speaker] += 1
            if turn.vector is not None:
                self.vectors.put(len(self.ids) - 1, turn.vector)

    def put_vectors(self, vectors: Mapping[str, bytes]) -> None:
        """Set the vectors of turns by their ids; unknown ids are passed over."""
        for raw_log_id, vector in vectors.items():
            if raw_log_id in self.positions:
                self.vectors.put(self.positions[raw_log_id], vector)

    def speakers(self) -> list[str]:
        """Names of the speakers; a prefix before a colon is a name only where most turns begin with one."""
        is_script = 2 * sum(self._turns_of[name] for name in self._prefixes) >= len(self.ids)
        return [
            name
            for name in self._turns_of
            if name and (name not in self._prefixes or (is_script and self._turns_of[name] >= _MIN_TURNS_OF_SPEAKER))
        ]

    def spoken_by(self, name: str) -> NDArray[np.bool_]:
        """Mask of a speaker's turns, shape (turns,)."""
        numbers = np.frombuffer(self._speakers, dtype=np.uint32)
        return np.asarray(numbers == self._speaker_numbers[name])

    def _prefix_of(self, content: str) -> str:
        prefix = _SPEAKER_PREFIX.match(content)
        if prefix is None:
            return ""
        self._prefixes.add(prefix[1])
        return prefix[1]


_BATCH = 2000


@dataclass(slots=True)
class _Entry:
    """An index of the log's first `next_position` turns, with vectors of `model` that are yet to be put into it."""

    index: ChatIndex
    model: str | None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_position: int = 0
    is_stale: bool = True
    vectors: dict[str, bytes] = field(default_factory=dict)


class ChatIndexCache(LogListener):
    """One index per chat, built when first used and extended as turns are recorded.

    The least recently used are dropped while all together exceed `limit_bytes`; the latest always stays.
    """

    def __init__(self, database: Database, gap: timedelta, limit_bytes: int) -> None:
        self.database, self.gap, self.limit_bytes = database, gap, limit_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        return sum(entry.index.size_bytes for entry in self._entries.values())

    def on_recorded(self, chat_id: str) -> None:
        if chat_id in self._entries:
            self._entries[chat_id].is_stale = True

    def on_erased(self, chat_id: str | None) -> None:
        if chat_id is None:
            self._entries.clear()
        else:
            self._entries.pop(chat_id, None)

    def put_vectors(self, chat_id: str, vectors: Mapping[str, bytes]) -> None:
        """Hand over vectors that have been committed."""
        if chat_id in self._entries:
            self._entries[chat_id].vectors.update(vectors)

    @asynccontextmanager
    async def index(self, chat_id: str, model: str | None) -> AsyncIterator[ChatIndex]:
        """Lock a chat's index, up to date and with the vectors of this model. Raises DatabaseAway.

        Without a model, as before the embedder is open, one that has vectors keeps them.
        """
        entry = self._entries.setdefault(chat_id, _Entry(ChatIndex(self.gap), model))
        self._entries.move_to_end(chat_id)
        async with entry.lock:
            if model is not None and entry.model != model:
                # It was built without vectors, or with others: those of turns long embedded would never come.
                entry.index, entry.model, entry.next_position = ChatIndex(self.gap), model, 0
                entry.is_stale, entry.vectors = True, {}
            if entry.is_stale:
                await self._update(chat_id, entry, model)
            if entry.vectors:
                vectors, entry.vectors = entry.vectors, {}
                await asyncio.to_thread(entry.index.put_vectors, vectors)
            yield entry.index
        self._evict()

    async def _update(self, chat_id: str, entry: _Entry, model: str | None) -> None:
        entry.is_stale = False
        try:
            await self._extend(chat_id, entry, model)
        except BaseException:
            # Some of the new turns may be in the index: the next use builds it anew.
            entry.index, entry.next_position, entry.is_stale = ChatIndex(self.gap), 0, True
            raise

    async def _extend(self, chat_id: str, entry: _Entry, model: str | None) -> None:
        is_new = and_(TurnRow.chat_id == chat_id, TurnRow.position >= entry.next_position)
        async with self.database.reading() as session:
            bounds = select(func.min(TurnRow.time), func.max(TurnRow.position)).where(is_new)
            first, last = (await session.execute(bounds)).one()
            if first is None:
                return
            if not entry.index.follows(first):
                # A new turn is older than one in the index: build it anew, in order.
                entry.index, entry.next_position = ChatIndex(self.gap), 0
            columns = (TurnRow.id, TurnRow.time, TurnRow.speaker, TurnRow.content, TurnRow.word_count)
            has_vector = and_(TurnVectorRow.raw_log_id == TurnRow.id, TurnVectorRow.model == model)
            query = (
                select(*columns, TurnVectorRow.data)
                .outerjoin(TurnVectorRow, has_vector)
                .where(TurnRow.chat_id == chat_id, TurnRow.kind != MessageKind.HIDDEN.value)
                .where(TurnRow.position >= entry.next_position, TurnRow.position <= last)
                .order_by(TurnRow.time, TurnRow.position)
            )
            rows = await session.stream(query.execution_options(yield_per=_BATCH))
            async for batch in rows.partitions():
                await asyncio.to_thread(entry.index.add, starmap(IndexedTurn, batch))
        entry.next_position = last + 1

    def _evict(self) -> None:
        sizes = {chat_id: entry.index.size_bytes for chat_id, entry in self._entries.items()}
        total = sum(sizes.values())
        for chat_id in list(self._entries)[:-1]:
            if total <= self.limit_bytes:
                return
            if not self._entries[chat_id].lock.locked():
                del self._entries[chat_id]
                total -= sizes[chat_id]
