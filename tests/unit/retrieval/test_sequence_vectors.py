"""Similarity of a question with every turn, in chats of any size."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.segments import Segments
from retrieval.sequence_vectors import SequenceVectors, Similarities

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SHARES = {-2: 0.3, -1: 0.6, 0: 1.0, 1: 0.3}
DIMS = 160

Rows = NDArray[np.float32]


def topics(turns: int, seed: int = 5) -> Rows:
    """Vectors such as models make: near each other, of few topics, each a little different."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((40, DIMS)) * np.geomspace(1, 0.05, DIMS)
    mixed = chance.dirichlet(np.full(40, 0.1), turns) @ centres
    shared = 0.35 * np.random.default_rng(0).standard_normal(DIMS)
    return (shared + mixed + 0.02 * chance.standard_normal((turns, DIMS))).astype("<f4")


def is_reply(position: int) -> bool:
    """Of every five turns two are an assistant's, one right behind the other."""
    return position % 5 in (1, 2)


def vectors_of(rows: Rows, without: frozenset[int] = frozenset(), pause_after: int = 7) -> SequenceVectors:
    """Vectors in segments of so many turns each."""
    segments = Segments(gap=HOUR)
    found = SequenceVectors(segments)
    for position, row in enumerate(rows):
        segments.add(NOW + position * MINUTE + position // pause_after * 5 * HOUR, is_reply=is_reply(position))
        if position not in without:
            found.put(position, row.tobytes())
    return found


class Book:
    """The same, turn by turn, in full precision."""

    def __init__(self, rows: Rows, without: frozenset[int] = frozenset(), pause_after: int = 7) -> None:
        has = np.array([position not in without for position in range(len(rows))])
        rows = rows.astype(np.float64) / np.linalg.norm(rows, axis=1, keepdims=True)
        self.mean = rows[has].mean(axis=0)
        own = rows - self.mean
        own /= np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-6)
        own[~has] = 0
        around = np.zeros_like(own)
        for here in range(len(rows)):
            for offset, share in SHARES.items():
                there = here + offset
                is_answered = offset != 0 and is_reply(min(here, there))
                if 0 <= there < len(rows) and there // pause_after == here // pause_after and not is_answered:
                    around[here] += share * own[there]
        self.own, self.blended = own, around / np.maximum(np.linalg.norm(around, axis=1, keepdims=True), 1e-6)

    def cosines(self, question: Rows) -> tuple[Rows, Rows]:
        wanted = question / np.linalg.norm(question) - self.mean
        wanted /= np.linalg.norm(wanted)
        return (self.own @ wanted).astype(np.float32), (self.blended @ wanted).astype(np.float32)


def similarities(found: SequenceVectors, question: Rows) -> Similarities:
    near = found.similarities(question.tobytes())
    assert near is not None
    return near


@pytest.mark.parametrize("turns", [1, 2, 30, 700])
def test_turns_are_as_near_as_a_careful_reader_would_find(turns: int) -> None:
    rows, question = topics(turns + 1)[:-1], topics(turns + 1)[-1]

    near = similarities(vectors_of(rows), question)

    alone, around = Book(rows).cosines(question)
    assert np.allclose(near.alone, alone, atol=2e-3)
    assert np.allclose(near.in_context, around, atol=2e-3)


def test_a_turn_without_a_vector_adds_nothing_to_those_around_it() -> None:
    rows, question, without = topics(101)[:-1], topics(101)[-1], frozenset({0, 13, 14, 50, 99})

    near = similarities(vectors_of(rows, without), question)

    alone, around = Book(rows, without).cosines(question)
    assert np.allclose(near.alone, alone, atol=2e-3)
    assert np.allclose(near.in_context[near.known], around[near.known], atol=2e-3)
    assert (near.standard_scores[0][sorted(without)] == 0).all()


def test_the_only_turn_with_a_vector_is_as_near_as_those_without() -> None:
    rows = topics(14)
    found = vectors_of(rows, without=frozenset(range(1, 14))).similarities(rows[5].tobytes())

    assert found is not None
    assert not found.alone.any()
    assert found.maximum(np.ones(14, dtype=np.bool_)) == 0


def test_of_a_large_chat_the_best_are_compared_as_of_a_small_one() -> None:
    rows = topics(6000)
    found, book = vectors_of(rows), Book(rows)
    for question in topics(20, seed=6):
        near = similarities(found, question)
        rough = np.add(*near.standard_scores)
        found.refine(near, np.argsort(-rough)[:400].tolist())

        alone, around = book.cosines(question)
        true = (alone - alone.mean()) / alone.std() + (around - around.mean()) / around.std()
        close = np.add(*near.standard_scores)
        best = np.argsort(-true)[:40]
        assert np.allclose(close[best], true[best], rtol=0.06)
        assert len(set(np.argsort(-close)[:40]) & set(best)) >= 39


def test_what_is_said_later_is_compared_as_if_it_had_been_there_from_the_beginning() -> None:
    rows, question = topics(6101)[:-1], topics(6101)[-1]
    segments = Segments(gap=HOUR)
    grown = SequenceVectors(segments)
    for position, row in enumerate(rows):
        segments.add(NOW + position * MINUTE + position // 7 * 5 * HOUR, is_reply=is_reply(position))
        grown.put(position, row.tobytes())
        if position % 500 == 0:
            similarities(grown, question)
    everything = list(range(len(rows)))

    near = similarities(grown, question)
    grown.refine(near, everything)

    at_once = vectors_of(rows)
    same = similarities(at_once, question)
    at_once.refine(same, everything)
    # What all turns share is looked at anew only when there are a quarter more.
    assert np.corrcoef(near.in_context, same.in_context)[0, 1] > 0.999


def test_in_a_large_chat_many_turns_may_wait_for_their_vectors() -> None:
    rows, question = topics(5001)[:-1], topics(5001)[-1]
    segments = Segments(gap=HOUR)
    found = SequenceVectors(segments)
    for position, row in enumerate(rows):
        segments.add(NOW + position * MINUTE)
        found.put(position, row.tobytes())
    before = similarities(found, question)
    for position in range(5000, 12_000):
        segments.add(NOW + position * MINUTE)

    after = similarities(found, question)
    found.refine(after, [4999, 5000, 11_999])

    assert before.is_approximate
    assert after.known.tolist() == [True] * 5000 + [False] * 7000
    assert np.allclose(after.alone[:4990], before.alone[:4990])
    assert (after.standard_scores[1][5000:] == 0).all()


def test_vectors_of_another_length_take_the_place_of_those_before_them() -> None:
    found = vectors_of(topics(5))
    found.put(4, np.ones(8, "<f4").tobytes())

    assert found.count == 1
    assert found.similarities(topics(1)[0].tobytes()) is None


def test_vectors_shorter_than_an_outline_will_do() -> None:
    rows = topics(5001)[:, :16]
    near = similarities(vectors_of(rows[:-1]), rows[-1])

    assert near.is_approximate
    assert np.allclose(near.alone, Book(rows[:-1]).cosines(rows[-1])[0], atol=2e-3)
