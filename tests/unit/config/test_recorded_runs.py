"""The recorded run that ships with MindBus is whole: every byte, every input, every call of the model."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from bus_schema.runs import RunStatus
from config.recorded_runs import RecordedRun, shipped_recording

LABEL, RECORDED = shipped_recording()
RUN = RECORDED.run


def test_the_run_has_completed_with_an_article() -> None:
    assert RUN.status is RunStatus.COMPLETED
    assert RUN.result is not None
    article = RECORDED.manifest(RUN.result.artifact_id)
    assert article is not None
    assert article.ref == RUN.result
    assert len(RECORDED.content(article).split()) > 100


def test_every_artifact_has_the_bytes_of_its_digest_and_nothing_else_is_there() -> None:
    for manifest in RECORDED.manifests:
        assert len(RECORDED.content(manifest)) == manifest.size_bytes
    assert {manifest.sha256 for manifest in RECORDED.manifests} == set(RECORDED.contents)


def test_the_lineage_leads_from_the_article_to_the_brief_over_the_outputs_of_the_steps() -> None:
    assert RUN.result is not None
    made_of: dict[str, set[str]] = {}
    for edge in RECORDED.lineage.edges:
        made_of.setdefault(edge.target, set()).add(edge.source)
    reached, new = {RUN.result.artifact_id}, {RUN.result.artifact_id}
    while new:
        new = {source for each in new for source in made_of.get(each, ())} - reached
        reached |= new

    assert {ref.artifact_id for ref in RUN.inputs} <= reached
    assert {step.artifact.artifact_id for step in RUN.steps if step.artifact} <= {m.id for m in RECORDED.artifacts}


def test_nothing_is_made_of_what_the_recording_does_not_have() -> None:
    ids = {manifest.id for manifest in RECORDED.manifests}
    for manifest in RECORDED.artifacts:
        assert set(manifest.context.input_artifacts if manifest.context else ()) <= ids


def test_every_call_of_the_model_is_there_and_is_of_the_model_that_the_label_names() -> None:
    calls = [call for _manifest, call in RECORDED.calls]

    assert len(calls) >= RUN.spent.model_calls > 0
    assert sum(call.prompt_tokens for call in calls) >= RUN.spent.prompt_tokens
    assert sum(call.completion_tokens for call in calls) >= RUN.spent.completion_tokens
    assert all(call.answer is not None or call.failure for call in calls)
    assert all(LABEL.model.lower().startswith(call.model_name.lower()) for call in calls)


def test_bytes_that_are_not_those_that_were_recorded_are_refused() -> None:
    first = RECORDED.artifacts[0]
    damaged = replace(RECORDED, contents={**RECORDED.contents, first.sha256: b"something else"})

    with pytest.raises(ValueError, match="does not have the bytes"):
        damaged.content(first)


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    RECORDED.write(tmp_path / "copy")

    assert RecordedRun.read(tmp_path / "copy") == RECORDED
    with pytest.raises(FileExistsError):
        RECORDED.write(tmp_path / "copy")


def test_no_path_of_the_machine_is_in_it() -> None:
    folder = resources.files("config").joinpath("recorded", "article")
    told = "".join(folder.joinpath(file).read_text("utf-8") for file in ("run.json", "graph.json", "manifests.jsonl"))

    assert [each for each in ("/home/", "/root/", "/work/", "file:") if each in told] == []
