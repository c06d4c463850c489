"""What a search knows of one chat, whatever layers its episodes are in."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.directions import Directions
from memory.lsm.search.postings import Postings
from memory.lsm.search.stretches import Stretches
from memory.stems import stems

# Where messages do not say who speaks, their texts may: «Anna: I moved to Riga.»
_PREFIX = re.compile(r"([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): ")
_LEAST_SAID = 3
_ASKS = re.compile(r"\?[)\"'»”\s]*(?:\[[^\]]*\]\s*)?$")
_ENTRY_BYTES = 120


class IndexedTurn(NamedTuple):
    """A turn as the log has it."""

    raw_log_id: str
    time: datetime
    speaker: str | None
    content: str
    words: int
    vector: bytes | None = None


class ChatIndex:
    """Words and vectors of all turns, in the order of the dialogue; the log is the truth, this is made from it."""

    def __init__(self, gap: timedelta) -> None:
        self.ids: list[str] = []
        self.places: dict[str, int] = {}
        self.stretches = Stretches(gap)
        self.postings = Postings(self.stretches)
        self.directions = Directions(self.stretches)
        self._words: array[int] = array("I")
        self._asking = bytearray()
        self._speakers: array[int] = array("I")
        self._speaker_numbers: dict[str, int] = {"": 0}
        self._said: Counter[str] = Counter()
        self._is_prefix: set[str] = set()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        return self.postings.size_bytes + self.directions.size_bytes + _ENTRY_BYTES * len(self.ids)

    @property
    def words(self) -> NDArray[np.uint32]:
        """How many words each turn has."""
        return np.frombuffer(self._words, dtype=np.uint32)

    @property
    def asking(self) -> NDArray[np.uint8]:
        """1 for each turn that ends in a question: it asks for what others tell."""
        return np.frombuffer(self._asking, dtype=np.uint8)

    def follows(self, time: datetime) -> bool:
        """Whether a turn of this time may be added behind the others."""
        return not self.ids or time.timestamp() >= self.stretches.times[-1]

    def add(self, turns: Iterable[IndexedTurn]) -> None:
        """The next ones, in the order of the dialogue."""
        for turn in turns:
            self.places[turn.raw_log_id] = len(self.ids)
            self.ids.append(turn.raw_log_id)
            speaker, text = self._spoken(turn)
            self.stretches.add(turn.time)
            self.postings.add(list(stems(text)))
            self._words.append(turn.words)
            self._asking.append(bool(_ASKS.search(text)))
            self._speakers.append(self._speaker_numbers.setdefault(speaker, len(self._speaker_numbers)))
            self._said[speaker] += 1
            if turn.vector is not None:
                self.directions.put(len(self.ids) - 1, turn.vector)

    def put_vectors(self, vectors: Mapping[str, bytes]) -> None:
        """Those of turns that are here."""
        for raw_log_id, vector in vectors.items():
            if raw_log_id in self.places:
                self.directions.put(self.places[raw_log_id], vector)

    def speakers(self) -> list[str]:
        """Whoever is known by name; a word before a colon is a name where most turns begin with one."""
        is_script = 2 * sum(self._said[name] for name in self._is_prefix) >= len(self.ids)
        return [
            name
            for name in self._said
            if name and (name not in self._is_prefix or (is_script and self._said[name] >= _LEAST_SAID))
        ]

    def said_by(self, name: str) -> NDArray[np.bool_]:
        """Which turns are this speaker's."""
        numbers = np.frombuffer(self._speakers, dtype=np.uint32)
        return np.asarray(numbers == self._speaker_numbers[name])

    def _spoken(self, turn: IndexedTurn) -> tuple[str, str]:
        if turn.speaker:
            return turn.speaker, turn.content
        prefix = _PREFIX.match(turn.content)
        if prefix is None:
            return "", turn.content
        self._is_prefix.add(prefix[1])
        # The name is left among the words: it may be none.
        return prefix[1], turn.content
