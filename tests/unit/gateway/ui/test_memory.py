"""The memory screen without a browser: questions, texts, where a unit came from."""

from typing import Any

import pytest

from bus_schema.glm import FoundKem, KemPage
from bus_schema.kem import Kem
from bus_schema.kem_matching import meets_filter
from bus_schema.kem_query import AllOf, KemQuery
from gateway.memory_changes import KemChange
from gateway.ui.memory.found import Found
from gateway.ui.memory.pieces import Piece, asked, changed, excerpt
from gateway.ui.memory.provenance import content_target, steps_of
from gateway.ui.memory.question import Question
from memory.errors import MalformedFilter
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
    question = Question("когда", "metadata.a=1 OR metadata.b=2", picks, "text/plain", "anna")

    address = {key: value for key, value in question.in_address().items() if value}
    assert Question.of_address(address) == question


def test_picked_values_narrow_what_was_typed() -> None:
    question = Question(
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
            Question(filter="metadata.a=1 AND AND", picks=picks).query()
        assert wrong.value.position == 18
    assert Question.of_address({"pick": "nonsense=", "user": "../x"}) == Question(filter="nonsense=")


def test_words_are_marked_in_whatever_form_they_stand() -> None:
    assert asked("Сдача макета — 2 декабря; макет готов.", ["макет"]) == [
        Piece("Сдача "),
        Piece("макета", "asked"),
        Piece(" — 2 декабря; "),
        Piece("макет", "asked"),
        Piece(" готов."),
    ]
    assert asked("<b>x</b>", []) == [Piece("<b>x</b>")]
    assert asked("", ["x"]) == []


def test_an_excerpt_is_where_the_words_are() -> None:
    content = "начало " * 100 + "здесь макет " + "конец " * 100
    pieces = excerpt(content, ["макета"], 120)
    line = "".join(piece.text for piece in pieces)

    assert Piece("макет", "asked") in pieces
    assert line.startswith("…")
    assert line.endswith("…")
    assert len(line) <= 122
    assert excerpt("Short.\n\nText.", [], 120) == [Piece("Short. Text.")]


def test_a_change_is_shown_by_its_words() -> None:
    assert changed("обещает 30 ноября; по плану", "обещает 2 декабря; по плану") == [
        Piece("обещает "),
        Piece("30 ноября; ", "struck"),
        Piece("2 декабря; ", "added"),
        Piece("по плану"),
    ]
    assert changed("x" * 10_000, "y") == [Piece("y")]


def test_a_unit_leads_back_to_what_it_was_made_from() -> None:
    links = [{"kind": kind, "id": f"{name}_1"} for kind, name in (("message", "msg"), ("fragment", "frag"))]
    said = a_kem(metadata={"user_id": "anna"}, source={"links": links})
    read = a_kem(metadata={"trace_id": "run 1"}, source={"artifact": REF, "start": 0, "end": 368})
    unknown = a_kem(metadata={"user_id": "../etc"}, source={"links": links[:1]})

    assert [(step.kind, step.target) for step in steps_of(said)] == [
        ("message", "/chat?with=anna&message=msg_1"),
        ("fragment", "/chat?with=anna"),
    ]
    assert [(step.id, step.target, step.span) for step in steps_of(read)] == [
        ("art_1", "/artifacts/art_1?trace=run+1", (0, 368))
    ]
    assert [step.target for step in steps_of(unknown)] == [""]
    assert (steps_of(a_kem()), content_target(a_kem())) == ([], "")
    assert content_target(a_kem(ref=REF)) == "/artifacts/art_1"


def test_a_change_marks_what_was_found_and_moves_nothing() -> None:
    found = Found()
    query = KemQuery.model_validate({"metadata_filters": {"kind": "plan"}})
    found.begin(query, KemPage(items=tuple(FoundKem(kem=a_kem(f"kem_{number}"), score=0.5) for number in range(3))))
    found.hear(
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
    hits = found.shown(Question(), "kem_2")

    assert [hit.kem.id for hit in hits] == ["kem_0", "kem_1", "kem_2"]
    assert [hit.is_gone for hit in hits] == [True, False, False]
    assert [hit.is_chosen for hit in hits] == [False, False, True]
    assert (hits[1].before, hits[1].kem.content, hits[1].found.score) == ("Friday.", "Sunday.", 0.5)
    assert found.fresh == {"kem_new"}
    assert [item.kem.id for item in found.items()] == ["kem_1", "kem_2"]
    assert found.shown(Question(content_type="text/html"), None) == []
