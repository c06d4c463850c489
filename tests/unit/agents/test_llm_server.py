"""The scripted endpoint as a process of its own, which other tests count model calls with."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from agents.models.offline.model import OfflineModel
from agents.models.openai_compatible import OpenAICompatible
from agents.models.prompt import Material, build_prompt
from mindbus.testing.wait import until
from tests.llm_server import read_calls

DRAFT = build_prompt(
    "draft", "write", "You write.", "Write.", [Material("art_1", "brief", "The harbour froze in May.")]
)


@contextmanager
def server_process(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.llm_server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.terminate()
        assert process.wait(10) == 0


def _model(base_url: str) -> OpenAICompatible:
    return OpenAICompatible(base_url=base_url, model="any", api_key=None, timeout=timedelta(seconds=10), retries=0)


@pytest.mark.slow
async def test_the_process_answers_as_the_offline_model_and_counts_calls(tmp_path: Path) -> None:
    count_file = tmp_path / "calls.jsonl"
    with server_process("--count-file", str(count_file)) as base_url:
        model = _model(base_url)
        over_http = await model.complete(DRAFT)
        again = await model.complete(DRAFT)
        await model.aclose()

    assert over_http.text == again.text == (await OfflineModel().complete(DRAFT)).text
    calls = await until(lambda: [each for each in read_calls(count_file) if each.event == "answered"])
    assert [(call.task, call.step) for call in calls] == [("draft", "write")] * 2
    assert calls[0].digest == calls[1].digest


@pytest.mark.slow
async def test_a_call_is_asked_before_it_is_answered(tmp_path: Path) -> None:
    count_file = tmp_path / "calls.jsonl"
    with server_process("--count-file", str(count_file), "--delay", "0.2") as base_url:
        model = _model(base_url)
        completion = await model.complete(DRAFT)
        await model.aclose()

    assert completion.took > timedelta(seconds=0.2)
    assert [call.event for call in read_calls(count_file)] == ["asked", "answering", "answered"]


def test_a_count_file_that_nobody_has_written_yet_has_no_calls(tmp_path: Path) -> None:
    assert read_calls(tmp_path / "none.jsonl") == []
