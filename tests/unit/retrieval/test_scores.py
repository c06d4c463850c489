"""Lexical scores, semantic scores and what they come to together."""

from retrieval.bm25 import lexical_scores
from retrieval.similarity import best_first, fuse


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
