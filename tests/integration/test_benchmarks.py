"""The benchmark runs and says what it promises; its times are nobody's business here."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.jobs import CALLERS, NAMES
from mindbus import Settings

ROOT = Path(__file__).parents[2]
RATIOS = {"mindbus/faststream", "mindbus/aio_pika"}
MEASURES = ("end_to_end", "consume", "publish", "idle_worker_rss_mib")
BY_CALLERS = ("request_p50_ms", "request_p99_ms")


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
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "benchmarks.bus", "--quick", "--json"),
        cwd=ROOT,
        env=Settings(amqp_url=amqp_url, data_dir=data_dir).environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode() + output.decode()
    found: dict[str, Any] = json.loads(output)
    return found


def _are_numbers(values: dict[str, float], of: set[str]) -> bool:
    return set(values) == of and all(value > 0 for value in values.values())
