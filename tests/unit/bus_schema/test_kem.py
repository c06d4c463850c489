"""Units of memory hold together; what cannot be remembered is refused in words that help."""

import base64
import math
import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from bus_schema.embeddings import Embedding
from bus_schema.envelope import explain
from bus_schema.glm import KemChanges
from bus_schema.kem import MAX_CONTENT_BYTES, Kem, KemDraft
from bus_schema.kem_query import MAX_CONDITIONS, KemQuery
from bus_schema.kps import ProcessRawData
from bus_schema.swm import QuerySwm

REF = {"artifact_id": "art_1", "version": 1, "sha256": "a" * 64, "size_bytes": 3, "content_type": "text/plain"}
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def refusal_of(message: type[BaseModel], /, **fields: Any) -> str:
    with pytest.raises(ValidationError) as invalid:
        message(**fields)
    return explain(invalid.value)


def test_a_vector_comes_back_as_it_was_sent() -> None:
    sent = Embedding.of("e5", [0.5, -1.25, 3.0])

    assert list(Embedding.model_validate_json(sent.model_dump_json()).floats) == [0.5, -1.25, 3.0]
    assert sent.data == packed(0.5, -1.25, 3.0)


@pytest.mark.parametrize(
    ("dim", "data", "reason"),
    [
        (3, packed(1, 2), "a vector of dim 3 has 12 bytes, data has 8"),
        (2, packed(1, math.nan), "NaN or infinity"),
        (2, packed(-math.inf, 1), "NaN or infinity"),
        (2, packed(0, -0.0), "zero throughout"),
        (2, "not base64!", "not base64"),
        (0, "", "dim"),
    ],
)
def test_what_is_no_vector_is_refused(dim: int, data: str, reason: str) -> None:
    assert reason in refusal_of(Embedding, model="e5", dim=dim, data=data)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "either content or a ref"),
        ({"content": "a", "ref": REF}, "either content or a ref"),
        ({"content": "x" * (10 * 1024**2)}, f"takes {10 * 1024**2} bytes, {MAX_CONTENT_BYTES} at most"),
        ({"content": "ж" * (MAX_CONTENT_BYTES // 2 + 1)}, "make it an artifact"),
        ({"content": "a\0b"}, "NUL"),
        ({"content": "\ud83d"}, "half of a character"),
        ({"content": "a", "metadata": {"k": math.nan}}, "none in JSON"),
        ({"content": "a", "metadata": {"k": [{"deep": math.inf}]}}, "none in JSON"),
        ({"content": "a", "metadata": {"k": 2**60}}, "beyond 2^53"),
        ({"content": "a", "metadata": {"k": NOON}}, "metadata"),
        ({"content": "a", "metadata": {"k": "x" * 20_000}}, "let the content say it"),
        ({"content": "a", "metadata": {"AND": 1}}, "give the key another name"),
        ({"content": "a", "metadata": {"a key": 1}}, "metadata"),
        ({"content": "a", "metadata": {"k": {"a\0": 1}}}, "NUL"),
        ({"content": "a", "readers": ["agent.critic"]}, "where the visibility is readers"),
        ({"content": "a", "owner": "agent.critic.7"}, "without its instance: agent.critic"),
        ({"content": "a", "id": "../etc"}, "id"),
        ({"content": "a", "colour": "red"}, "colour"),
    ],
)
def test_what_does_not_fit_is_named(fields: dict[str, Any], reason: str) -> None:
    assert reason in refusal_of(KemDraft, **fields)


def test_metadata_is_kept_as_it_is_in_either_language() -> None:
    metadata = {"автор": "Анна", "tags": ["релиз", 1, None, True], "nested": {"a": 1.5}}

    assert KemDraft(content="a", metadata=metadata).metadata == metadata


def test_a_newer_service_may_say_more_of_a_unit() -> None:
    fields = {"id": "kem_1", "owner": "user.anna", "created_at": NOON, "updated_at": NOON, "version": 1}

    assert Kem.model_validate(fields | {"content": "a", "mood": "good"}).content == "a"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "at least one field"),
        ({"metadata": None}, "cannot be set to null: metadata"),
        ({"content": "a", "ref": REF}, "either content or a ref"),
    ],
)
def test_a_change_changes_something(fields: dict[str, Any], reason: str) -> None:
    assert reason in refusal_of(KemChanges, **fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"colour": "red"}, "colour"),
        ({"metadata_filters": {"a": None}}, "metadata_filters"),
        ({"metadata_filters": {"a": {}}}, "at least one of gt, gte, lt, lte"),
        ({"metadata_filters": {"a": {"near": 1}}}, "near"),
        ({"metadata_filters": {"a": {"gte": math.nan}}}, "gte"),
        ({"metadata_filters": {"AND": []}}, "AND"),
        ({"metadata_filters": {"AND": [{"a": 1}], "b": 1}}, "metadata_filters"),
        ({"metadata_filters": {"NOT": {"NOT": {"NOT": {"NOT": {"NOT": {"NOT": {"NOT": {"NOT": {}}}}}}}}}}, "8 levels"),
        ({"metadata_filters": {"OR": [{"a": 1, "b": 2}] * (MAX_CONDITIONS // 2 + 1)}}, "64 conditions at most"),
        ({"created_at_start": NOON, "created_at_end": NOON.replace(hour=11)}, "created_at_start is later"),
        ({"order_by": "colour"}, "order_by"),
        ({"text_query": ""}, "text_query"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(fields: dict[str, Any], reason: str) -> None:
    assert reason in refusal_of(KemQuery, **fields)


def test_a_question_comes_back_as_it_was_asked() -> None:
    tree = {"OR": [{"a": 1, "b": True, "c": {"gte": 2}}, {"NOT": {"d": {"any_of": ["x", 1, False]}}}]}
    asked = KemQuery.model_validate({"metadata_filters": tree})

    assert asked.model_dump(mode="json", exclude_unset=True) == {"metadata_filters": tree}
    assert KemQuery.model_validate_json(asked.model_dump_json()) == asked


def test_the_working_memory_is_not_asked_for_nearness() -> None:
    assert "glm.retrieve_kems" in refusal_of(QuerySwm, query=KemQuery(text_query="release"))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"raw_content": " \n"}, "nothing to learn"),
        ({}, "either a source or raw_content"),
        ({"raw_content": "a", "chunking": {"max_chars": 200, "overlap_chars": 101}}, "more than half"),
    ],
)
def test_there_must_be_something_to_process(fields: dict[str, Any], reason: str) -> None:
    assert reason in refusal_of(ProcessRawData, content_type="text/plain", **fields)


@pytest.mark.parametrize("model", [KemDraft, KemQuery])
def test_every_field_that_people_fill_in_says_what_it_is(model: type[KemDraft | KemQuery]) -> None:
    assert [name for name, field in model.model_fields.items() if not field.description] == []
