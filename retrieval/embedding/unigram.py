"""Unigram tokenizer: the most probable division of a text into known pieces (Kudo 2018, «Subword Regularization»)."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# SentencePiece's sign for the beginning of a word; no piece has it elsewhere, so that words are divided one by one.
_WORD_START = "\u2581"
_SPACES = re.compile("  +")
# SentencePiece: an unknown character is worse than every piece by this.
_UNKNOWN_PENALTY = 10.0
_KEPT_WORDS = 50_000


@dataclass(frozen=True)
class Vocabulary:
    """Pieces of words with their log probabilities; `characters` maps code points to what stands for them.

    The pieces lie end to end in UTF-8; `bounds` are where they begin and the last one ends.
    """

    text: bytes
    bounds: list[int]
    scores: NDArray[np.float32]
    begin: int
    end: int
    unknown: int
    characters: dict[int, str]

    def pieces(self) -> Iterator[str]:
        """In the order of their ids."""
        return (self.text[start:end].decode() for start, end in pairwise(self.bounds))


class UnigramTokenizer:
    """Pieces by the hashes of their texts, which take a tenth of the memory of the texts; may be used by threads.

    Two of some 2^18 texts have one hash of 64 bits with a probability of 2^-29.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        hashes = np.fromiter(map(hash, vocabulary.pieces()), dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        self._hashes = array("q", hashes[order].tobytes())
        self._ids = array("i", order.astype(np.int32).tobytes())
        self._scores = array("f", vocabulary.scores[order].tobytes())
        self._longest = max(map(len, vocabulary.pieces()))
        self._unknown = vocabulary.unknown
        self._unknown_score = float(vocabulary.scores.min()) - _UNKNOWN_PENALTY
        self._characters = vocabulary.characters
        self._words: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str, most: int) -> list[int]:
        """Ids of the text's first pieces, no more than `most`."""
        text = _SPACES.sub(" ", text.translate(self._characters))
        ids: list[int] = []
        for word in text.removeprefix(" ").split(" "):
            ids += self._of_word(_WORD_START + word)
            if len(ids) >= most:
                break
        return ids[:most]

    def _of_word(self, word: str) -> tuple[int, ...]:
        ids = self._words.get(word)
        if ids is None:
            if len(self._words) >= _KEPT_WORDS:
                self._words.clear()
            ids = self._words[word] = self._divide(word)
        return ids

    def _divide(self, word: str) -> tuple[int, ...]:
        """Viterbi: the best score of each beginning of the word, its last piece and where that begins."""
        best = [0.0] + [-np.inf] * len(word)
        last = [(0, 0)] * (len(word) + 1)
        for start in range(len(word)):
            if best[start] + self._unknown_score > best[start + 1]:
                best[start + 1], last[start + 1] = best[start] + self._unknown_score, (self._unknown, start)
            for end in range(start + 1, min(start + self._longest, len(word)) + 1):
                place = self._place(word[start:end])
                if place is not None and best[start] + self._scores[place] > best[end]:
                    best[end], last[end] = best[start] + self._scores[place], (self._ids[place], start)
        ids, end = [], len(word)
        while end:
            number, end = last[end]
            ids.append(number)
        return tuple(reversed(ids))

    def _place(self, text: str) -> int | None:
        key = hash(text)
        place = bisect_left(self._hashes, key)
        return place if place < len(self._hashes) and self._hashes[place] == key else None
