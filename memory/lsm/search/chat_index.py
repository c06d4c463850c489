"""Chat index: words, vectors, speakers and times of all turns of one chat."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from bus_schema.episodes import NoteKind
from language.words import stems
from retrieval.bm25 import SequencePostings
from retrieval.segments import Segments
from retrieval.sequence_vectors import SequenceVectors
from retrieval.snapshots import Arrays, Snapshot

# Where messages do not name their speaker, the text may: «Anna: I moved to Riga.»
_SPEAKER_PREFIX = re.compile(r"([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): ")
_MIN_TURNS_OF_SPEAKER = 3
_QUESTION_END = re.compile(r"\?[)\"'»”\s]*(?:\[[^\]]*\]\s*)?$")
_NOTE_BITS: dict[NoteKind, int] = {kind: 1 << place for place, kind in enumerate(get_args(NoteKind))}
_SHORT_WORDS = 60
# Estimated memory of a turn beside its words and its vector.
_TURN_BYTES = 120


class IndexedTurn(NamedTuple):
    """A turn of the log with its word count and, if known, its vector (little-endian float32)."""

    raw_log_id: str
    time: datetime
    role: str
    speaker: str | None
    content: str
    words: int
    vector: bytes | None = None


class _TurnIds:
    """Ids in the order of the turns; those of a snapshot stay in its file, UTF-8 of one width."""

    def __init__(self) -> None:
        self._mapped: NDArray[np.bytes_] = np.zeros(0, dtype="S1")
        # Positions of the mapped ids in the order of the ids.
        self._order: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._added: dict[str, int] = {}
        self._latest: list[str] = []

    def __len__(self) -> int:
        return len(self._mapped) + len(self._latest)

    def __getitem__(self, position: int) -> str:
        first = len(self._mapped)
        return self._latest[position - first] if position >= first else self._mapped[position].decode()

    def append(self, turn_id: str) -> None:
        self._added[turn_id] = len(self)
        self._latest.append(turn_id)

    def positions(self, ids: Iterable[str]) -> dict[str, int]:
        """Positions of those of the ids that are there."""
        wanted = list(ids)
        found = {each: self._added[each] for each in wanted if each in self._added}
        if len(self._mapped) and len(found) < len(wanted):
            keys = np.array([each.encode() for each in wanted])
            places = np.searchsorted(self._mapped, keys, sorter=self._order)
            for each, place in zip(wanted, places.clip(max=len(self._order) - 1), strict=True):
                position = int(self._order[place])
                if self._mapped[position] == each.encode():
                    found[each] = position
        return found

    def snapshot(self) -> Snapshot:
        mapped = np.concatenate([self._mapped, np.array([each.encode() for each in self._latest], dtype=np.bytes_)])
        order = np.argsort(mapped, kind="stable").astype(np.int64)
        return Snapshot({"ids": mapped, "order": order}, {"count": len(mapped)})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> Self:
        found, count = cls(), snapshot.facts["count"]
        found._mapped, found._order = snapshot.arrays["ids"][:count], snapshot.arrays["order"][:count]
        return found


class ChatIndex:
    """Turns in the order of the dialogue, rebuilt from the log at any time."""

    def __init__(self, gap: timedelta) -> None:
        self.ids = _TurnIds()
        self.segments = Segments(gap)
        self.postings = SequencePostings(self.segments)
        self.vectors = SequenceVectors(self.segments)
        self._words: array[int] = array("I")
        self._questions = bytearray()
        self._by_user = bytearray()
        self._notes = bytearray()
        # Notes up to this one of the table are in the index.
        self.last_note = 0
        self._speakers: array[int] = array("I")
        self._speaker_numbers: dict[str, int] = {"": 0}
        self._turns_of: Counter[str] = Counter()
        # Found when they are asked for: there may be thousands of prefixes that are none.
        self._names: list[str] | None = None
        self._has_assistant = False
        self._prefixes: set[str] = set()

    def __len__(self) -> int:
        return len(self.ids)

    def snapshot(self) -> Snapshot:
        """All of it, but for the room that arrays keep."""
        own: Arrays = {
            "words": self.words,
            "questions": self.questions,
            "by_user": np.frombuffer(self._by_user, dtype=np.uint8),
            "notes": np.frombuffer(self._notes, dtype=np.uint8),
            "speakers": np.frombuffer(self._speakers, dtype=np.uint32),
        }
        parts = {
            "ids": self.ids.snapshot(),
            "segments": self.segments.snapshot(),
            "postings": self.postings.snapshot(),
            "vectors": self.vectors.snapshot(),
            "own": Snapshot(own, {"speakers": self._speaker_numbers, "turns": self._turns_of}),
        }
        facts = {"prefixes": sorted(self._prefixes), "has_assistant": self._has_assistant, "last_note": self.last_note}
        return Snapshot.joined(parts, facts)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> Self:
        ids, own = _TurnIds.of_snapshot(snapshot.part("ids")), snapshot.part("own")
        found = cls(timedelta())
        found.ids = ids
        found.segments = Segments.of_snapshot(snapshot.part("segments"), len(ids))
        found.postings = SequencePostings.of_snapshot(snapshot.part("postings"), found.segments, len(ids))
        found.vectors = SequenceVectors.of_snapshot(snapshot.part("vectors"), found.segments)
        found._words = array("I", own.arrays["words"][: len(ids)].tobytes())
        found._questions = bytearray(own.arrays["questions"][: len(ids)].tobytes())
        found._by_user = bytearray(own.arrays["by_user"][: len(ids)].tobytes())
        found._notes = bytearray(own.arrays["notes"][: len(ids)].tobytes())
        found.last_note = snapshot.facts["last_note"]
        found._has_assistant = snapshot.facts["has_assistant"]
        found._speakers = array("I", own.arrays["speakers"][: len(ids)].tobytes())
        found._speaker_numbers, found._turns_of = own.facts["speakers"], Counter(own.facts["turns"])
        found._prefixes = set(snapshot.facts["prefixes"])
        return found

    @property
    def size_bytes(self) -> int:
        """Memory that the index takes; what is mapped from a snapshot counts as none."""
        return self.postings.size_bytes + self.vectors.size_bytes + _TURN_BYTES * len(self.ids)

    @property
    def words(self) -> NDArray[np.uint32]:
        """Word count of every turn, shape (turns,)."""
        return np.frombuffer(self._words, dtype=np.uint32)

    @property
    def questions(self) -> NDArray[np.uint8]:
        """1 for every turn that ends in a question, shape (turns,)."""
        return np.frombuffer(self._questions, dtype=np.uint8)

    @property
    def by_user(self) -> NDArray[np.uint8] | None:
        """1 for every turn of the user's, shape (turns,); None where people talk with each other, who have names."""
        return np.frombuffer(self._by_user, dtype=np.uint8) if self._has_assistant else None

    def follows(self, time: datetime) -> bool:
        """Whether a turn of this time may be appended."""
        return not self.ids or time.timestamp() >= self.segments.times[-1]

    def add(self, turns: Iterable[IndexedTurn]) -> None:
        for turn in turns:
            self.ids.append(turn.raw_log_id)
            speaker = turn.speaker or self._prefix_of(turn.content)
            is_by_assistant = turn.role == "assistant" and turn.speaker is None
            asks = bool(_QUESTION_END.search(turn.content))
            # A short question is what the person answers next.
            self.segments.add(turn.time, is_reply=is_by_assistant and not (asks and turn.words <= _SHORT_WORDS))
            # A prefix stays among the words: it may be no name.
            self.postings.add(list(stems(turn.content)))
            self._words.append(turn.words)
            self._questions.append(asks)
            self._by_user.append(turn.role == "user")
            self._notes.append(0)
            self._has_assistant |= is_by_assistant
            self._speakers.append(self._speaker_numbers.setdefault(speaker, len(self._speaker_numbers)))
            self._turns_of[speaker] += 1
            self._names = None
            if turn.vector is not None:
                self.vectors.put(len(self.ids) - 1, turn.vector)

    def put_vectors(self, vectors: Mapping[str, bytes]) -> None:
        """Set the vectors of turns by their ids; unknown ids are passed over."""
        for raw_log_id, position in self.ids.positions(vectors).items():
            self.vectors.put(position, vectors[raw_log_id])

    def put_notes(self, notes: Mapping[str, Iterable[NoteKind]]) -> None:
        """Add the kinds of notes of turns by their ids; unknown ids are passed over."""
        for raw_log_id, position in self.ids.positions(notes).items():
            for kind in notes[raw_log_id]:
                self._notes[position] |= _NOTE_BITS[kind]

    def noted(self, kinds: Iterable[NoteKind]) -> NDArray[np.bool_]:
        """Mask of the turns with a note of these kinds, shape (turns,)."""
        return np.asarray(np.frombuffer(self._notes, dtype=np.uint8) & sum(map(_NOTE_BITS.__getitem__, kinds)) > 0)

    def speakers(self) -> list[str]:
        """Names of the speakers; a prefix before a colon is a name only where most turns begin with one."""
        if self._names is None:
            is_script = 2 * sum(self._turns_of[name] for name in self._prefixes) >= len(self.ids)
            self._names = [
                name
                for name, turns in self._turns_of.items()
                if name and (name not in self._prefixes or (is_script and turns >= _MIN_TURNS_OF_SPEAKER))
            ]
        return self._names

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
