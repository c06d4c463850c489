"""The manifest holds together."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from bus_schema.artifacts import Manifest, retention_of
from bus_schema.envelope import explain


def a_manifest(**changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "id": "art_1",
        "trace_id": "run_1",
        "created_by": "agent.researcher.1",
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "artifact_type": "draft",
        "content_type": "text/markdown",
        "uri": "file:///x",
        "size_bytes": 3,
        "checksum": "sha256:" + "a" * 64,
        "owner": "agent.researcher",
    }
    return Manifest(**(fields | changes))


def test_its_ref_carries_the_bare_digest() -> None:
    assert a_manifest().ref.sha256 == "a" * 64


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"owner": "agent.researcher.1"}, "named without its instance: agent.researcher"),
        ({"version": 2}, "version 1 supersedes nothing"),
        ({"supersedes": "art_0"}, "version 1 supersedes nothing"),
        ({"checksum": "md5:1"}, "checksum"),
        ({"retention": "forever"}, "retention"),
        ({"created_at": datetime(2026, 1, 1)}, "timezone"),  # noqa: DTZ001  # naive on purpose
        ({"id": "../etc"}, "id"),
        ({"size_bytes": -1}, "size_bytes"),
        ({"visibility": "all"}, "visibility"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        a_manifest(**changes)

    assert reason in explain(invalid.value)


def test_an_explanation_never_echoes_the_value() -> None:
    with pytest.raises(ValidationError) as invalid:
        a_manifest(checksum="my-secret-key")

    assert "my-secret-key" not in explain(invalid.value)


def test_retention_is_a_time_or_for_ever() -> None:
    assert retention_of("infinite") is None
    assert retention_of("30d") == timedelta(days=30)
