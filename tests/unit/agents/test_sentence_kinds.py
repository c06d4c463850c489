"""The small model that tells work, facts and moods from other talk."""

import numpy as np
import pytest

from agents.sentence_kinds import WEIGHTS, sentence_kind
from benchmarks.sentence_kinds import DATA, HEADS, digest_of, read_sentences


def test_weights_are_those_of_the_committed_sentences() -> None:
    with np.load(DATA / WEIGHTS) as weights:
        assert str(weights["digest"]) == digest_of(read_sentences()), "run: python -m benchmarks.sentence_kinds"
        assert {head: tuple(weights[f"{head}_kinds"].tolist()) for head in HEADS} == HEADS


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("pop the parcel round to Hendersons before they shut", "task"),
        ("надо бы заехать за шинами до выходных", "task"),
        ("the kiln only goes up to twelve hundred degrees", "fact"),
        ("склад работает без выходных", "fact"),
        ("they named the baby after me, I'm welling up", "glad"),
        ("так паршиво на душе, что слов нет", "upset"),
    ],
)
def test_a_sentence_is_of_its_kind(text: str, kind: str) -> None:
    read = sentence_kind(text)

    probabilities = {"task": read.task, "fact": read.fact, "glad": read.glad, "upset": read.upset}
    assert max(probabilities, key=probabilities.__getitem__) == kind, probabilities


def test_a_question_about_the_past_is_none_of_them() -> None:
    read = sentence_kind("did you see the match last night?")

    assert max(read.task, read.fact, read.glad, read.upset) < 0.5, read
