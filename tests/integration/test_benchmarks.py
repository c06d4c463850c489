"""The benchmark runs and says what it promises; its times are nobody's business here."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.floors import LIMITS
from benchmarks.jobs import CALLERS, NAMES
from benchmarks.memory import PLACES
from benchmarks.memory_peers import CONTESTANTS
from benchmarks.memory_units import questions
from benchmarks.million_turns import FEW
from benchmarks.screens import SCREENS
from benchmarks.working_memory import DEEP, QUERIES, WHOLE
from config.settings import FleetSettings
from tests.clocks import NOON

# They measure whoever changes what they measure; whoever changes something else need not wait for them.
pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
RATIOS = {"mindbus/faststream", "mindbus/aio_pika"}
MEASURES = ("end_to_end", "consume", "publish", "idle_worker_rss_mib")
BY_CALLERS = ("request_p50_ms", "request_p99_ms")
PEERS = {"files": "cp+sha256sum", "s3": "s3fs+sha256"}
LEAST = {"files": 0.7, "s3": 0.55}
MOST_GROWTH_MIB = 60
SAID = (
    "The spare key is under the blue pot.",
    "I shall remember that.",
    "Rex goes to the vet on Monday.",
    "Noted.",
)


async def test_a_quick_run_has_a_number_for_everybody_and_refuses_none(vhost_url: str, tmp_path: Path) -> None:
    report = await _quick_run(vhost_url, tmp_path)

    assert report["refused"] == []
    for measure in MEASURES:
        assert _are_numbers(report[measure], set(NAMES))
        assert _are_numbers(report["ratios"][measure], RATIOS)
    for measure in BY_CALLERS:
        for callers in map(str, CALLERS):
            assert _are_numbers(report[measure][callers], set(NAMES))
            assert _are_numbers(report["ratios"][measure][callers], RATIOS)


async def _quick_run(amqp_url: str, data_dir: Path) -> dict[str, Any]:
    return await _report_of("benchmarks.bus", "--quick", settings=FleetSettings(amqp_url=amqp_url, data_dir=data_dir))


async def _report_of(module: str, *arguments: str, settings: FleetSettings | None = None) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module, "--json", *arguments),
        cwd=ROOT,
        env=(settings or FleetSettings()).environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode() + output.decode()
    found: dict[str, Any] = json.loads(output)
    return found


def _are_numbers(values: dict[str, float], of: set[str]) -> bool:
    return set(values) == of and all(value > 0 for value in values.values())


async def test_a_quick_run_of_storage_has_a_number_for_everybody(tmp_path: Path) -> None:
    report = await _report_of("benchmarks.storage", "--quick", "--store", "s3", "--folder", str(tmp_path))

    for way in ("put", "get"):
        assert _are_numbers(report["s3"][way]["mib_per_s"], {"mindbus", PEERS["s3"]})
        assert _are_numbers(report["s3"][way]["ratios"], {f"mindbus/{PEERS['s3']}"})
    assert report["s3"]["small"]["registered_per_s"] > 0


@pytest.mark.timeout(3000)
async def test_a_gibibyte_keeps_pace_with_plain_tools_in_little_memory(tmp_path: Path) -> None:
    report = await _report_of("benchmarks.storage", "--rounds", "3", "--folder", str(tmp_path))

    for store, peer in PEERS.items():
        print(store, json.dumps(report[store]))
        assert all(mib <= MOST_GROWTH_MIB for mib in report[store]["growth_mib"].values())
        for way in ("put", "get"):
            assert report[store][way]["ratios"][f"mindbus/{peer}"] >= LEAST[store]


async def test_a_quick_run_of_runs_has_spans_beside_the_medians_of_everybody() -> None:
    report = await _report_of("benchmarks.runs", "--quick")

    for found in (report, report["dbos"], report["langgraph"]):
        assert found["one_run_s_span"] == [found["one_run_s"]] * 2
        assert found["steps_per_s_span"] == {name: [rate] * 2 for name, rate in found["steps_per_s"].items()}
        assert _are_numbers(found["steps_per_s"], {"1", "20", "100"})


async def test_a_quick_run_of_the_dialogue_has_every_number() -> None:
    report = await _report_of("benchmarks.dialogue", "--quick")
    spans = report.pop("spans")
    assert report.keys() == spans.keys()
    assert all(value > 0 for value in report.values())
    assert all(
        lowest == value == highest for value, (lowest, highest) in zip(report.values(), spans.values(), strict=True)
    )


async def test_a_quick_run_of_the_first_token_has_medians_and_readings_for_both_endpoints() -> None:
    report = await _report_of("benchmarks.first_token", "--quick")

    assert report.keys() == {"4", "1"}
    for numbers in report.values():
        assert all(numbers[name] > 0 for name in ("quiet_p50_ms", "busy_p50_ms", "busy_p90_ms"))
        assert numbers["readings"] + numbers["broken_off"] > 0


async def test_a_quick_run_of_memory_has_a_time_for_every_question_in_every_place() -> None:
    report = await _report_of("benchmarks.memory", "--quick")

    assert all(report[name] > 0 for name in ("worker_peak_mib", "start_s"))
    assert _are_numbers(report["stored_per_s"], {"bus", "worker"})
    assert _are_numbers(report["points_per_s"], {"embedded", "qdrant"})
    measured = {question.name: question.is_measured for question in questions(NOON)}
    assert set(report["asked_ms"]) == set(measured)
    for name, by_place in report["asked_ms"].items():
        assert set(by_place) == (set(PLACES) if measured[name] else {"bus", "worker"})
        assert all(0 < p50 <= p99 for p50, p99 in by_place.values())


async def test_a_million_units_are_opened_by_a_process_of_its_own() -> None:
    report = await _report_of("benchmarks.million_units", "--quick")

    measured = ("units", "stored_per_s", "database_mib", "index_mib", "start_s", "start_cpu_s")
    assert all(report[name] > 0 for name in measured)
    assert _are_numbers(report["memory_mib"], {"resident", "private", "peak"})
    assert set(report["asked_ms"]) == {question.name for question in questions(NOON)}


async def test_memories_are_asked_the_same_questions_with_the_same_vectors(tmp_path: Path) -> None:
    report = await _report_of("benchmarks.memory_recall", "--quick", "--data", str(tmp_path / "none.json"))

    assert "synthetic" in report["data"]
    found = report["memories"]
    assert set(found) | set(report["left_out"]) == set(CONTESTANTS)
    assert set(report["left_out"]) <= {"langgraph sqlite", "mem0"}
    for name, row in found.items():
        assert all(row[key] > 0 for key in ("p50_ms", "p99_ms", "stored_per_s")), name
        assert row["recall"]["10"] == 100, name
        assert row["durability"]


async def test_working_memory_has_a_time_for_every_query_in_every_store() -> None:
    report = await _report_of("benchmarks.working_memory", "--quick")

    assert set(report["query_swm"]) | set(report["left_out"]) == {"default", "redis"}
    for by_query in report["query_swm"].values():
        assert set(by_query) == {*QUERIES, DEEP, WHOLE}
        for row in by_query.values():
            assert 0 < row["p50_ms"] <= row["p99_ms"]
            assert row["cpu_ms"] >= 0


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """A chat of four turns, with a question about each of the person's."""
    messages = [
        {"id": number, "role": ("user", "assistant")[number % 2], "content": content}
        for number, content in enumerate(SAID)
    ]
    asked = [
        {"question": "Where is the spare key?", "evidence": [0]},
        {"question": "Who sees the vet?", "evidence": [2]},
    ]
    chat = {"chat_id": "small", "sessions": [{"time": NOON.isoformat(), "messages": messages}], "questions": asked}
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([chat]))
    return path


async def test_an_import_is_measured_beside_the_engine(chats: Path) -> None:
    report = await _report_of("benchmarks.embedding", "--data", str(chats))

    assert _are_numbers(report["words_per_second"], {"now", "before"})
    assert _are_numbers(report["words_per_cpu_second"], {"now", "before"})
    assert report["recall"]["lost"] == {"any": 0, "all": 0}
    assert report["recall"]["now"]["1200"]["questions"] == 2
    assert report["words"] == sum(len(content.split()) for content in SAID)


async def test_questions_find_their_evidence_among_turns_drawn_around_it(chats: Path) -> None:
    report = await _report_of("benchmarks.million_turns", "--quick", "--data", str(chats))

    assert report["embedded"]["turns"] == len(SAID)
    assert report["row"]["turns"] == len(SAID) + FEW
    assert report["imported_per_s"] > 0
    assert all(0 < p50 <= p99 for p50, p99 in (report["row"][name] for name in ("asked_ms", "ranked_ms")))
    assert all(0 < likeness <= 1 for likeness in report["likeness"].values())
    for by_budget in report["found"].values():
        assert {budget: (each["any"], each["questions"]) for budget, each in by_budget.items()} == {
            "1200": (100, 2),
            "2400": (100, 2),
        }


async def test_a_quick_run_of_the_fleet_has_every_number() -> None:
    report = await _report_of("benchmarks.fleet", "--quick")

    assert _are_numbers(report["screens_s"], set(SCREENS))
    assert all(report[name] > 0 for name in ("idle_pss_mb", "up_s", "down_s", "cli_s"))


async def test_nothing_has_become_many_times_as_slow() -> None:
    report = await _report_of("benchmarks.floors")

    assert report["loops"].keys() == LIMITS.keys()
    assert report["missed"] == []
