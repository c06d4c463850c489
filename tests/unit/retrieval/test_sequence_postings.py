"""BM25 over a sequence, beside the formula worked out term by term."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from retrieval.bm25 import CONTEXT, K1, B, SequencePostings
from retrieval.segments import Segments

WORDS = ("the", "of", "boat", "lantern", "quince")
OFTEN = (0.9, 0.5, 0.2, 0.03, 0.004)
ALONE = (0,)


def is_reply(item: int) -> bool:
    return item % 3 == 1


def sequence(items: int) -> tuple[list[list[str]], list[int]]:
    """Terms of each item, some of them repeated, and the number of the stretch that it is in."""
    drawn, stretch = random.Random(items), 0
    texts, stretches = list[list[str]](), list[int]()
    for _ in range(items):
        stretch += drawn.random() < 0.1
        texts.append(
            [word for word, share in zip(WORDS, OFTEN, strict=True) for _ in range(3) if drawn.random() < share]
        )
        stretches.append(stretch)
    return texts, stretches


def is_open(item: int, other: int) -> bool:
    return item == other or not is_reply(min(item, other))


def as_worked_out(texts: list[list[str]], stretches: list[int], term: str, offsets: tuple[int, ...]) -> list[float]:
    """The formula for every item, the words of its neighbours in the same stretch as its own, up to a reply."""
    items = range(len(texts))
    heard = [
        [i + o for o in offsets if i + o in items and stretches[i + o] == stretches[i] and is_open(i, i + o)]
        for i in items
    ]
    lengths = [sum(len(texts[each]) for each in of) for of in heard]
    counts = [sum(texts[each].count(term) for each in of) for of in heard]
    having, mean = sum(map(bool, counts)), max(sum(lengths) / len(texts), 1.0)
    weight = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
    return [
        weight * count / (count + K1 * (1 - B + B * length / mean)) if count else 0.0
        for count, length in zip(counts, lengths, strict=True)
    ]


@pytest.mark.parametrize("offsets", [ALONE, CONTEXT])
@pytest.mark.parametrize("items", [1, 2, 3, 600])
def test_rare_and_common_words_score_as_the_formula_says(items: int, offsets: tuple[int, ...]) -> None:
    texts, stretches = sequence(items)
    segments = Segments(gap=timedelta(hours=1))
    postings, began = SequencePostings(segments), datetime(2026, 3, 1, tzinfo=UTC)

    for added, text in enumerate(texts):
        segments.add(began + timedelta(minutes=added, days=stretches[added]), is_reply=is_reply(added))
        postings.add(text)
        if added in (items // 2, items - 1):
            # Scores that were asked for earlier say nothing of what has come since.
            for term in WORDS:
                expected = as_worked_out(texts[: added + 1], stretches, term, offsets)
                assert postings.scores([term], offsets).tolist() == pytest.approx(expected, rel=1e-5), term


def test_the_share_of_a_word_is_that_of_the_items_which_have_it() -> None:
    texts, _ = sequence(600)
    segments = Segments(gap=timedelta(days=1))
    postings = SequencePostings(segments)
    for number, text in enumerate(texts):
        segments.add(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=number))
        postings.add(text)

    for term in WORDS:
        positions, values = postings.shares(term)
        scores = postings.total([(positions, values)])
        having = [number for number, text in enumerate(texts) if term in text]
        assert scores.nonzero()[0].tolist() == postings.positions(term).tolist() == having
    assert not postings.scores(["unheard-of"], CONTEXT).any()
