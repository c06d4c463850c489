"""MLflow's artifact logging with SQLite and a folder: a process that is told where to in its first line.

It runs in an environment of its own (`benchmarks/mlflow-requirements.txt`). Each agent logs one file after the other:
with a run of its own for each, since it is runs that have an owner, tags and a place in searches, or all into one run,
which leaves no row of the artifact at all. MLflow copies a file without waiting for the disk; SQLite syncs its rows.
"""

import json
import logging
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlflow import MlflowClient

from benchmarks.servers.cpu_time import cpu_s
from benchmarks.storage_children import READY
from benchmarks.storage_tasks import Small, TookEach


class MlflowAgents:
    """Agents as threads, since MLflow's client blocks."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._client = MlflowClient(f"sqlite:///{folder / 'mlflow.sqlite'}")
        artifacts = (folder / "artifacts").as_uri()
        self._experiment = self._client.create_experiment("bench", artifact_location=artifacts)

    def log(self, order: Small) -> TookEach:
        share, before = order.artifacts // order.agents, cpu_s([os.getpid()])
        runs = [self._client.create_run(self._experiment).info.run_id for _ in range(order.agents)]
        began = time.perf_counter()
        with ThreadPoolExecutor(order.agents) as threads:
            each = list(threads.map(lambda run_id: self._log_each(run_id, share, order), runs))
        seconds = time.perf_counter() - began
        return TookEach(
            seconds=seconds,
            put_ms=[took for agent in each for took in agent],
            register_ms=[],
            artifacts=share * order.agents,
            cpu_s={"mlflow": cpu_s([os.getpid()]) - before},
        )

    def _log_each(self, run_id: str, count: int, order: Small) -> list[float]:
        took_ms = []
        for _ in range(count):
            source = self._folder / os.urandom(8).hex()
            source.write_bytes(os.urandom(order.content_bytes))
            began = time.perf_counter()
            if order.a_run_each:
                run_id = self._client.create_run(self._experiment, tags={"type": "note", "trace": "bench"}).info.run_id
            self._client.log_artifact(run_id, str(source))
            if order.a_run_each:
                self._client.set_terminated(run_id)
            took_ms.append((time.perf_counter() - began) * 1000)
            source.unlink()
        return took_ms


def main() -> None:
    logging.disable(logging.WARNING)
    agents = MlflowAgents(Path(json.loads(sys.stdin.readline())))
    print(READY, flush=True)
    for line in sys.stdin:
        print(agents.log(Small.model_validate_json(line)).model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
