"""Lexical scores, semantic scores and what they come to together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.bm25 import lexical_scores
from retrieval.similarity import best_first, fuse, fused_parts, standard_scores


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    texts = {f"common_{n}": "release note" for n in range(9)} | {"rare": "zebra note", "both": "zebra release"}
    counts = {"release": 10, "zebra": 2}
    hits = lexical_scores({"releas": "x", "zebra": "zebra", "release": "release"}, texts, 16, counts)

    assert hits["both"].score > hits["rare"].score > hits["common_0"].score
    assert hits["both"].words == ("zebra", "release")


def test_of_a_long_question_few_common_words_are_little_evidence() -> None:
    texts = {f"text_{n}": "the report was late" for n in range(10)}
    asked = {stem: stem for stem in ("report", "vaccin", "spoil", "winter", "cold")}

    assert lexical_scores(asked, texts, 16, {"report": 10})["text_0"].score < 0.05


def test_words_that_say_little_leave_it_to_meaning() -> None:
    near = {"right": 0.9, **{f"other_{n}": 0.8 + n / 1000 for n in range(20)}}
    scores = fuse({"other_3": 0.02, "other_4": 0.02}, near)

    assert best_first(scores)[0] == "right"
    assert all(0 < score < 1 for score in scores.values())


def test_of_equals_the_order_is_always_the_same() -> None:
    assert best_first({"b": 0.5, "a": 0.5, "c": 0.6}) == ["c", "a", "b"]


SCORES = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1), min_size=1)


@given(SCORES, SCORES)
def test_the_parts_of_a_score_add_up_to_it(lexical: dict[str, float], cosines: dict[str, float]) -> None:
    scores, semantic = fuse(lexical, cosines), standard_scores(cosines)

    parts = {key: fused_parts(lexical.get(key, 0.0), semantic.get(key, 0.0)) for key in scores}
    assert {key: sum(each) for key, each in parts.items()} == pytest.approx(scores)
    assert all(each.words >= 0 and each.meaning * semantic.get(key, 0.0) >= -1e-9 for key, each in parts.items())
