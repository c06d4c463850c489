import json
from pathlib import Path

import pytest

from bus_schema.process import ExecuteStep, StartProcess
from bus_schema.storage import GetArtifact, SearchArtifacts, SetTraceMembers
from mindbus.cli.errors import UsageError
from mindbus.cli.send import fields_of, learn_types, message_class_of, message_of


@pytest.fixture(autouse=True)
def _types() -> None:
    learn_types()


@pytest.mark.parametrize("name", ["storage.get_artifact", "mb.cmd.storage.get_artifact.v1"])
def test_a_type_goes_by_its_short_or_its_whole_name(name: str) -> None:
    assert message_class_of(name) is GetArtifact


def test_an_event_goes_by_topic_and_name() -> None:
    assert message_class_of("process.step_completed").wire.type == "mb.evt.process.step_completed.v1"


def test_an_unknown_type_is_told_its_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"unknown type 'storage.get_artefact': did you mean storage.get_artifact"):
        message_class_of("storage.get_artefact")


def test_a_type_like_no_other_is_told_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"known are .*artifact\.expired, .*storage\.register_artifact"):
        message_class_of("zzzzzz")


def test_values_are_read_as_their_fields_types() -> None:
    query = message_of(SearchArtifacts, ["limit=5", "created_after=2026-01-02T03:04:05Z", "artifact_type=final"])

    assert isinstance(query, SearchArtifacts)
    assert (query.limit, query.artifact_type) == (5, "final")
    assert query.created_after is not None
    assert query.created_after.year == 2026


def test_a_text_that_looks_like_a_number_stays_a_text() -> None:
    started = message_of(
        StartProcess, ["run_id=run_1", "card_name=article", f"inputs={json.dumps([REF])}", 'params={"n":"5"}']
    )

    assert isinstance(started, StartProcess)
    assert started.params == {"n": "5"}


def test_a_structure_is_json() -> None:
    members = message_of(SetTraceMembers, ["trace_id=t1", 'members=["agent.a", "user.ann"]'])

    assert isinstance(members, SetTraceMembers)
    assert members.members == ("agent.a", "user.ann")


def test_a_structure_that_is_no_json_says_so() -> None:
    with pytest.raises(UsageError, match=r"members: .*write it as JSON"):
        message_of(SetTraceMembers, ["trace_id=t1", "members=agent.a"])


def test_an_at_sign_takes_the_text_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "instructions.txt").write_text("Пиши\nкоротко", encoding="utf-8")

    step = message_of(ExecuteStep, [*ORDER, f"instructions=@{tmp_path / 'instructions.txt'}"])

    assert isinstance(step, ExecuteStep)
    assert step.instructions == "Пиши\nкоротко"


def test_two_at_signs_are_one() -> None:
    step = message_of(ExecuteStep, [*ORDER, "instructions=@@home"])

    assert isinstance(step, ExecuteStep)
    assert step.instructions == "@home"


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"instructions: /nowhere/at/all cannot be read"):
        message_of(ExecuteStep, [*ORDER, "instructions=@/nowhere/at/all"])


def test_an_unknown_field_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"has no field artifact; its fields are artifact_id, presigned\?$"):
        message_of(GetArtifact, ["artifact=art_1"])


def test_an_unknown_field_of_an_event_is_refused_too() -> None:
    with pytest.raises(UsageError, match=r"process.started has no field nonsense"):
        message_of(message_class_of("process.started"), ["nonsense=1"])


def test_a_missing_field_is_named() -> None:
    with pytest.raises(UsageError, match=r"storage.get_artifact: artifact_id: Field required"):
        message_of(GetArtifact, [])


def test_a_value_beyond_its_bounds_is_refused() -> None:
    with pytest.raises(UsageError, match="limit: Input should be less than or equal to 200"):
        message_of(SearchArtifacts, ["limit=500"])


def test_a_pair_without_equals_sign_is_refused() -> None:
    with pytest.raises(UsageError, match="'limit' is not key=value"):
        message_of(SearchArtifacts, ["limit"])


def test_pairs_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "query.json"
    file.write_text('{"limit": 3, "trace_id": "t1"}', encoding="utf-8")

    query = message_of(SearchArtifacts, ["limit=4"], file)

    assert isinstance(query, SearchArtifacts)
    assert (query.limit, query.trace_id) == (4, "t1")


@pytest.mark.parametrize("text", ["[1]", "{", '{"limit": 1, "limit": 2}', "NaN"])
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "query.json"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=r"query.json: "):
        message_of(SearchArtifacts, [], file)


def test_required_fields_are_listed_first() -> None:
    assert fields_of(SetTraceMembers) == "trace_id, members, retention?"
    assert fields_of(StartProcess).startswith("run_id, inputs, card?")


REF = {"artifact_id": "art_1", "version": 1, "sha256": "0" * 64, "size_bytes": 1, "content_type": "text/plain"}
ORDER = [
    "run_id=run_1",
    "step_id=draft",
    "attempt=1",
    "produces=draft",
    "inputs=[]",
    "deadline=2030-01-01T00:00:00Z",
]
