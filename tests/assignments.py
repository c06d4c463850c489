"""Assignments for roles, valid by default."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from agents.creative.assignment import Assignment, Input
from bus_schema.artifacts import Manifest
from bus_schema.process import ExecuteStep, NamedInput
from mindbus.sdk.role import StepInput

BRIEF = "Трамвай №12 вышел на линию 3 мая 1931 года. Напишите статью о нём.\n"


def a_manifest(content: bytes = BRIEF.encode(), **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "id": "art_brief",
        "trace_id": "run_1",
        "created_by": "user.local",
        "created_at": datetime(2026, 3, 14, tzinfo=UTC),
        "artifact_type": "brief",
        "content_type": "text/markdown",
        "uri": "objects/sha256/00/00/0/1",
        "size_bytes": len(content),
        "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "owner": "user.local",
        "status": "completed",
    }
    return Manifest.model_validate(fields | changes)


def an_input(text: str = BRIEF, name: str = "brief", **changes: Any) -> Input:
    return Input.of(StepInput(name, a_manifest(text.encode(), **changes), text.encode()))


def an_order(*inputs: NamedInput, **changes: Any) -> ExecuteStep:
    fields: dict[str, Any] = {
        "run_id": "run_1",
        "step_id": "draft",
        "attempt": 1,
        "produces": "draft",
        "instructions": "Write the first draft.",
        "inputs": inputs,
        "deadline": datetime(2100, 1, 1, tzinfo=UTC),
    }
    return ExecuteStep.model_validate(fields | changes)


def an_assignment(*inputs: Input, **changes: Any) -> Assignment:
    inputs = inputs or (an_input(),)
    named = [NamedInput(name=each.name, artifact=each.manifest.ref) for each in inputs]
    return Assignment(an_order(*named, **changes), inputs)
