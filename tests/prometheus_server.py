"""Debian's Prometheus on a folder, with the configuration of compose/observability."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

OBSERVABILITY = Path(__file__).parents[1] / "compose" / "observability"


def require_prometheus() -> None:
    """Skip without it: `make setup-tests` installs it where it may."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        pytest.skip("Prometheus is missing: sudo apt-get install prometheus")


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it where the rules are."""
    return subprocess.run(["promtool", *arguments], cwd=OBSERVABILITY, capture_output=True, text=True, check=False)


def queries_of_dashboards() -> list[tuple[str, str]]:
    """Every query of every panel, with the name of the panel."""
    found = []
    for file in sorted((OBSERVABILITY / "grafana" / "dashboards").glob("*.json")):
        board = json.loads(file.read_text(encoding="utf-8"))
        for panel in board["panels"]:
            found += [(f"{board['title']}: {panel['title']}", target["expr"]) for target in panel["targets"]]
    return found


@dataclass(frozen=True)
class PrometheusServer:
    """One that runs, at `url`."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Series of an instant query. Raises AssertionError with Prometheus's words."""
        wanted = {"query": expression}
        answer = httpx.get(f"{self.url}/api/v1/query", params=wanted, trust_env=False, verify=False, timeout=60).json()
        assert answer["status"] == "success", f"{expression}: {answer}"
        series: list[dict[str, Any]] = answer["data"]["result"]
        return series

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", trust_env=False, verify=False, timeout=60).is_success
        except httpx.TransportError:
            return False


@contextmanager
def scraping(target: str, token: str, folder: Path) -> Iterator[PrometheusServer]:
    """Prometheus that scrapes a gateway each second, as it is told in the stack but for addresses and intervals."""
    folder.mkdir()
    (folder / "metrics_token").write_text(token)
    config = yaml.safe_load((OBSERVABILITY / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(OBSERVABILITY / "alerts.yml")]
    fleet = next(job for job in config["scrape_configs"] if job["job_name"] == "mindbus")
    fleet["static_configs"] = [{"targets": [target]}]
    fleet["authorization"]["credentials_file"] = str(folder / "metrics_token")
    config["scrape_configs"] = [fleet]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = _free_port()
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            yield PrometheusServer(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
