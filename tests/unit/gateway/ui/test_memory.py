"""The memory screen without a browser: questions, texts, where a unit came from."""

from typing import Any

import pytest

from bus_schema.glm import Explanation, FoundKem, KemPage
from bus_schema.kem import Kem
from bus_schema.kem_match import meets_filter
from bus_schema.kem_query import AllOf, KemQuery
from gateway.shared_memory import KemChange
from gateway.ui.memory.detail import content_target, origin_of
from gateway.ui.memory.results import ScoreShares, SearchResults
from gateway.ui.memory.search_form import MemorySearch
from gateway.ui.rich_text import HighlightedText, excerpt, highlight, text_diff
from mindbus.sdk.kem_filters import MalformedFilter
from tests.clocks import NOON

REF = {"artifact_id": "art_1", "version": 1, "sha256": "a" * 64, "size_bytes": 9, "content_type": "text/plain"}


def a_kem(kem_id: str = "kem_1", version: int = 1, **fields: Any) -> Kem:
    known = {"id": kem_id, "owner": "agent.alice", "created_at": NOON, "updated_at": NOON, "version": version}
    content = {} if "ref" in fields else {"content": "Friday."}
    return Kem.model_validate(known | content | fields)


def change(event: Any, kem: Kem) -> KemChange:
    gone = event == "deleted"
    return KemChange(
        event=event, kem_id=kem.id, at=NOON, by="svc.glm", kem=None if gone else kem, metadata=kem.metadata
    )


def test_a_question_survives_its_address() -> None:
    picks = frozenset({("kind", "fact"), ("kind", 'a "plan" \\ \n'), ("project", "Северный ветер"), ("n", "3")})
    question = MemorySearch("когда", "metadata.a=1 OR metadata.b=2", picks, "text/plain", "anna")

    address = {key: value for key, value in question.in_address().items() if value}
    assert MemorySearch.of_address(address) == question


def test_picked_values_narrow_what_was_typed() -> None:
    question = MemorySearch(
        filter="metadata.a=1 OR metadata.b=2", picks=frozenset({("kind", "x"), ("kind", "y"), ("n", "3")})
    )
    wanted = question.query().metadata_filters

    assert isinstance(wanted, AllOf)
    assert meets_filter({"a": 1, "kind": "x", "n": 3}, wanted)
    assert meets_filter({"b": "2", "kind": ["y", "z"], "n": "3"}, wanted)
    assert not meets_filter({"a": 1, "kind": "z", "n": 3}, wanted)
    assert not meets_filter({"kind": "x", "n": 3}, wanted)


def test_what_is_wrong_with_a_filter_is_shown_where_it_was_typed() -> None:
    for picks in (frozenset[tuple[str, str]](), frozenset({("kind", "x")})):
        with pytest.raises(MalformedFilter) as wrong:
            MemorySearch(filter="metadata.a=1 AND AND", picks=picks).query()
        assert wrong.value.position == 18
    assert MemorySearch.of_address({"pick": "nonsense=", "user": "../x"}) == MemorySearch(filter="nonsense=")


def test_words_are_marked_in_whatever_form_they_stand() -> None:
    assert highlight("Сдача макета — 2 декабря; макет готов.", ["макет"]) == [
        HighlightedText("Сдача "),
        HighlightedText("макета", "asked"),
        HighlightedText(" — 2 декабря; "),
        HighlightedText("макет", "asked"),
        HighlightedText(" готов."),
    ]
    assert highlight("<b>x</b>", []) == [HighlightedText("<b>x</b>")]
    assert highlight("", ["x"]) == []


def test_an_excerpt_is_where_the_words_are() -> None:
    content = "начало " * 100 + "здесь макет " + "конец " * 100
    pieces = excerpt(content, ["макета"], 120)
    line = "".join(piece.text for piece in pieces)

    assert HighlightedText("макет", "asked") in pieces
    assert line.startswith("…")
    assert line.endswith("…")
    assert len(line) <= 122
    assert excerpt("Short.\n\nText.", [], 120) == [HighlightedText("Short. Text.")]


def test_a_change_is_shown_by_its_words() -> None:
    assert text_diff("обещает 30 ноября; по плану", "обещает 2 декабря; по плану") == [
        HighlightedText("обещает "),
        HighlightedText("30 ноября; ", "struck"),
        HighlightedText("2 декабря; ", "added"),
        HighlightedText("по плану"),
    ]
    assert text_diff("x" * 10_000, "y") == [HighlightedText("y")]


def test_a_unit_leads_back_to_what_it_was_made_from() -> None:
    links = [{"kind": kind, "id": f"{name}_1"} for kind, name in (("message", "msg"), ("fragment", "frag"))]
    said = a_kem(metadata={"user_id": "anna"}, source={"links": links})
    read = a_kem(metadata={"trace_id": "run 1"}, source={"artifact": REF, "start": 0, "end": 368})
    unknown = a_kem(metadata={"user_id": "../etc"}, source={"links": links[:1]})

    assert [(step.kind, step.target) for step in origin_of(said)] == [
        ("message", "/chat?with=anna&message=msg_1"),
        ("fragment", "/chat?with=anna"),
    ]
    assert [(step.id, step.target, step.span) for step in origin_of(read)] == [
        ("art_1", "/artifacts/art_1?trace=run+1", (0, 368))
    ]
    assert [step.target for step in origin_of(unknown)] == [""]
    assert (origin_of(a_kem()), content_target(a_kem())) == ([], "")
    assert content_target(a_kem(ref=REF)) == "/artifacts/art_1"


def test_a_change_marks_what_was_found_and_moves_nothing() -> None:
    found = SearchResults()
    query = KemQuery.model_validate({"metadata_filters": {"kind": "plan"}})
    found.begin(query, KemPage(items=tuple(FoundKem(kem=a_kem(f"kem_{number}"), score=0.5) for number in range(3))))
    found.receive(
        [
            change("updated", a_kem("kem_1", version=2, content="Saturday.")),
            change("updated", a_kem("kem_1", version=3, content="Sunday.")),
            change("updated", a_kem("kem_1", version=2, content="Late news.")),
            change("deleted", a_kem("kem_0")),
            change("evicted", a_kem("kem_2")),
            change("stored", a_kem("kem_new", metadata={"kind": "plan"})),
            change("stored", a_kem("kem_other", metadata={"kind": "fact"})),
            change("published", a_kem("kem_at_hand")),
            change("stored", a_kem("kem_gone", metadata={"kind": "plan"})),
            change("deleted", a_kem("kem_gone")),
        ]
    )
    hits = found.visible_items(MemorySearch(), "kem_2")

    assert [hit.kem.id for hit in hits] == ["kem_0", "kem_1", "kem_2"]
    assert [hit.is_gone for hit in hits] == [True, False, False]
    assert [hit.is_chosen for hit in hits] == [False, False, True]
    assert (hits[1].before, hits[1].kem.content, hits[1].found.score) == ("Friday.", "Sunday.", 0.5)
    assert found.fresh == {"kem_new"}
    assert [item.kem.id for item in found.items()] == ["kem_1", "kem_2"]
    assert found.visible_items(MemorySearch(content_type="text/html"), None) == []


@pytest.mark.parametrize("validity", [1.0, 0.5])
def test_the_parts_of_a_score_add_up_as_shown(validity: float) -> None:
    explain = Explanation(base=0.1192, by_words=0.2551, by_meaning=-0.0349, validity=validity)
    score = (0.1192 + 0.2551 - 0.0349) * validity
    shares = ScoreShares.of(score, explain)
    assert round(shares.base + shares.words + shares.meaning, 2) == round(score, 2)
    assert shares.base == round(0.1192 * validity, 2)
    assert shares.meaning < 0
