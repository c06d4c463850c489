"""An unbroken talk is cut where another matter begins, one that wanders is left whole."""

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

from memory.lsm.tables import TurnRow
from memory.lsm.topics import EpisodeText, topic_boundary
from retrieval.embedding.selection import open_embedder
from tests.clocks import NOON

TALKS = yaml.safe_load((Path(__file__).parents[3] / "data" / "talks.yaml").read_text(encoding="utf-8"))
LANGUAGES = ("en", "ru")
DIM = 64

Rows = NDArray[np.float32]


def turns_of(contents: Sequence[str]) -> list[TurnRow]:
    return [
        TurnRow(
            id=f"raw_{number}",
            role=("user", "assistant")[number % 2],
            content=content,
            speaker=None,
            time=NOON + timedelta(minutes=number),
        )
        for number, content in enumerate(contents)
    ]


def text(turns: Sequence[TurnRow], rows: Rows | None = None) -> EpisodeText:
    vectors = {} if rows is None else {turn.id: row.tobytes() for turn, row in zip(turns, rows, strict=True)}
    return EpisodeText(turns, vectors)


def borders(turns: Sequence[TurnRow], rows: Rows | None, first: int = 0) -> list[int]:
    """As settling does: both parts are looked at again."""
    place = topic_boundary(text(turns, rows))
    if place is None:
        return []
    before, after = (None, None) if rows is None else (rows[:place], rows[place:])
    return [*borders(turns[:place], before, first), first + place, *borders(turns[place:], after, first + place)]


def meanings(*sizes: int, apart: float) -> Rows:
    """Of turns that all have much in common, each stretch about something else."""
    dice = np.random.default_rng(5)
    common = dice.normal(size=DIM)
    matters = [common + apart * dice.normal(size=DIM) for _ in sizes]
    rows = [
        matter + 0.4 * dice.normal(size=DIM) for matter, size in zip(matters, sizes, strict=True) for _ in range(size)
    ]
    return np.array(rows, dtype="<f4")


def different_words(count: int) -> list[str]:
    return [f"alpha{number} beta{number} gamma{number}" for number in range(count)]


def test_a_talk_is_cut_where_its_turns_begin_to_mean_something_else() -> None:
    assert borders(turns_of(different_words(30)), meanings(10, 8, 12, apart=0.4)) == [10, 18]


def test_a_talk_whose_turns_all_mean_much_the_same_is_not_cut() -> None:
    assert borders(turns_of(different_words(30)), meanings(30, apart=0.4)) == []


def test_words_that_come_back_hold_a_talk_together() -> None:
    held = [*different_words(10), *reversed(different_words(10))]

    assert topic_boundary(text(turns_of(different_words(20)), meanings(10, 10, apart=0.15))) == 10
    assert topic_boundary(text(turns_of(held), meanings(10, 10, apart=0.15))) is None


def test_without_vectors_only_what_shares_no_words_is_cut() -> None:
    talk = [f"tomatoes garden {word}" for word in different_words(8)] + [f"index query {word}" for word in "abcdefgh"]

    assert borders(turns_of(talk), None) == [8]
    assert borders(turns_of(different_words(20)), None) == []


def test_turns_without_words_stand_beside_the_matter() -> None:
    turns = turns_of(["", *different_words(20)])
    spoken = meanings(9, 11, apart=0.4)
    vectors = {turn.id: row.tobytes() for turn, row in zip(turns[1:], spoken, strict=True)}

    assert topic_boundary(EpisodeText(turns, vectors)) == 10


@pytest.mark.proof
@pytest.mark.timeout(900)
async def test_matters_are_told_apart_by_the_real_model() -> None:
    """Precision before recall, within two turns."""
    embedder, dice = await open_embedder(), random.Random(11)
    true = found = right = met = 0
    for language in LANGUAGES:
        contents = {content for kind in TALKS.values() for each in kind[language] for content in each}
        known = {content: (await embedder.passages([content]))[0].floats for content in contents}
        mixed = [dice.sample(TALKS["matters"][language], dice.choice((2, 3, 4))) for _ in range(12)]
        for matters in (*mixed, *([each] for each in TALKS["one"][language])):
            talk = [content for matter in matters for content in matter]
            begins = list(np.cumsum([len(matter) for matter in matters[:-1]]))
            got = borders(turns_of(talk), np.array([known[content] for content in talk], dtype="<f4"))
            true, found = true + len(begins), found + len(got)
            right += sum(any(abs(place - begin) <= 2 for begin in begins) for place in got)
            met += sum(any(abs(place - begin) <= 2 for place in got) for begin in begins)
    await embedder.close()

    assert right / found >= 0.8
    assert met / true >= 0.6
