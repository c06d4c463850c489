"""The episodes screen without a browser: what was kept of a text, what is said of it."""

from datetime import UTC, datetime
from typing import Any

from bus_schema.episodes import ColdContent, Decision, Entity, HotContent, Note, RawTurn, WarmContent
from bus_schema.lsm_statistics import ExplainedEpisode
from gateway.ui.episodes.retained_content import RetainedContent, lines_of, places_of

NOON = datetime(2026, 10, 3, 12, tzinfo=UTC)
ESTIMATE = RawTurn(
    raw_log_id="raw_1",
    role="user",
    content="«Полярис» прислал смету, 4,2 млн ₸. Аванс 30 %, остальное после монтажа. Погода чудесная.",
    time=NOON,
)
CHAT = RawTurn(raw_log_id="raw_2", role="assistant", content="Рад слышать! Ждём Полярис.", time=NOON)
WARM = WarmContent(
    summary="Прислали смету.",
    key_points=("Полярис прислал смету на 4,2 млн ₸.",),
    key_point_sources=(("raw_1",),),
    entities=(
        Entity(name="Полярис", kind="organization", raw_log_ids=("raw_1",)),
        Entity(name="4,2 млн ₸", kind="amount", raw_log_ids=("raw_1",)),
    ),
    decisions=(Decision(text="Аванс 30 %, остальное после монтажа.", raw_log_ids=("raw_1",)),),
)


def explained(content: Any, **report: Any) -> ExplainedEpisode:
    head = {"id": "ep_1", "chat_id": "anna", "created_at": NOON, "last_accessed": NOON, "layer": content.layer}
    numbers = {"priority": 0.3, "headline": "Смета", "turns": 2, "words": 20, "version": 2}
    times = {"started_at": NOON, "ended_at": NOON, "content": content, "raw_log_ids": ("raw_1", "raw_2")}
    made = {"maker": "offline", "words_before": 20, "words_after": 9, "verified": True}
    terms = {"recency": 0.3, "frequency": 0, "importance": 0, "relevance": 0}
    fields = {"episode": head | numbers | times, "turns": (ESTIMATE, CHAT), "kept_words": 9, "terms": terms}
    return ExplainedEpisode.model_validate(fields | {"report": made | report})


def shown(pieces: Any, look: str) -> list[str]:
    return [piece.text.strip() for piece in pieces if getattr(piece, look)]


def test_names_decisions_and_what_was_left_out_are_told_apart() -> None:
    pieces = RetainedContent.by(WARM).mark(ESTIMATE)

    assert "".join(piece.text for piece in pieces) == ESTIMATE.content
    assert shown(pieces, "is_entity") == ["Полярис", "4,2 млн ₸"]
    assert shown(pieces, "is_decision") == ["Аванс 30 %, остальное после монтажа."]
    assert shown(pieces, "is_left_out") == ["Погода чудесная."]


def test_a_name_is_marked_only_where_it_was_taken_from() -> None:
    pieces = RetainedContent.by(WARM).mark(CHAT)

    assert shown(pieces, "is_entity") == []
    assert "".join(shown(pieces, "is_left_out")) == "Рад слышать!Ждём Полярис."


def test_of_a_hot_episode_nothing_is_left_out() -> None:
    hot = HotContent(raw_messages=(ESTIMATE, CHAT), entities=WARM.entities)

    assert shown(RetainedContent.by(hot).mark(ESTIMATE), "is_left_out") == []
    assert shown(RetainedContent.by(hot).mark(ESTIMATE), "is_entity") == ["Полярис", "4,2 млн ₸"]


def test_of_a_cold_episode_its_tags_are_what_is_named() -> None:
    pieces = RetainedContent.by(ColdContent(headline="Смета «Полярис»", tags=("Полярис",))).mark(CHAT)

    assert shown(pieces, "is_entity") == ["Полярис"]
    assert shown(pieces, "is_left_out") == ["Рад слышать!"]


def test_a_name_is_found_in_another_form_of_its_words() -> None:
    text = "Телефон есть у Дины Ли, позвони."
    assert [text[start:end] for start, end in places_of("Дина Ли", text)] == ["Дины Ли"]
    assert places_of("30", "до 2030 года") == []
    assert places_of("...", "a. b.") == []


def test_lines_carry_their_sources_and_what_the_check_put_back() -> None:
    lines = lines_of(explained(WARM, put_back=("полярис",)))

    assert [(line.kind, line.sources) for line in lines] == [
        ("summary", ()),
        ("decision", ("raw_1",)),
        ("point", ("raw_1",)),
        ("entity", ("raw_1",)),
        ("entity", ("raw_1",)),
    ]
    assert [line.text for line in lines if line.is_put_back] == ["Полярис"]


def test_a_cold_episode_is_a_headline_with_its_tags() -> None:
    cold = explained(ColdContent(headline="Смета «Полярис»", tags=("смета",)))
    note = Note(kind="number", text="Аванс 30 %.", raw_log_ids=("raw_1",))
    noted = cold.model_copy(update={"episode": cold.episode.model_copy(update={"notes": (note,)})})

    assert [(line.kind, line.text) for line in lines_of(cold)] == [("headline", "Смета «Полярис»"), ("tag", "смета")]
    assert [(line.kind, line.text, line.sources) for line in lines_of(noted)[2:]] == [
        ("note", "Аванс 30 %.", ("raw_1",))
    ]
