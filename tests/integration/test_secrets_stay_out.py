"""Canaries in every secret setting: no log, event, file, process list, answer or error shows one."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from config.settings import FleetSettings
from mindbus.testing.wait import eventually
from tests.brokers import Broker
from tests.canaries import canary, require_none, require_none_in_files
from tests.command_line import Ended, Shell, require_rabbitmq

AWAY = "127.0.0.1:9"
IMPATIENT = {"MINDBUS_REQUEST_TIMEOUT_S": "3", "MINDBUS_PUBLISH_TIMEOUT_S": "3"}


SECRETS = {
    f"MINDBUS_{name.upper()}": canary(name.replace("_", "-"))
    for name, field in FleetSettings.model_fields.items()
    if not field.repr
}
DATABASE = f"postgresql+asyncpg://mindbus:{canary('sql')}@{AWAY}/mindbus"
REDIS = f"redis://:{canary('redis')}@{AWAY}/0"
UNREACHABLE = {
    "MINDBUS_AMQP_URL": f"amqp://mindbus:{canary('amqp')}@{AWAY}/",
    "MINDBUS_MANAGEMENT_URL": f"http://mindbus:{canary('management')}@{AWAY}",
    "MINDBUS_DATABASE_URL": DATABASE,
    "MINDBUS_QDRANT_URL": f"http://user:{canary('qdrant')}@{AWAY}",
    "MINDBUS_ARTIFACTS_URL": "s3://bucket/artifacts",
    "MINDBUS_S3_ENDPOINT_URL": f"http://user:{canary('s3')}@{AWAY}",
}


class RepeatsItsKey(BaseHTTPRequestHandler):
    """An endpoint that refuses every request with an error that repeats the key, as some do."""

    def do_POST(self) -> None:  # the name that http.server calls
        self.rfile.read(int(self.headers.get("content-length", 0)))
        key = self.headers.get("authorization", "").removeprefix("Bearer ")
        body = f'{{"error": {{"message": "Incorrect API key provided: {key}", "code": "invalid_api_key"}}}}'.encode()
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: whatever this prints is none of the fleet's words."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), RepeatsItsKey) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def failed(shell: Shell, *command: str) -> Ended:
    ended = shell.spawn(*command)
    assert ended.returncode != 0, command
    require_none(ended.stdout + ended.stderr, command)
    return ended


def test_commands_that_reach_nothing_show_no_secret(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data", settings={**SECRETS, **UNREACHABLE, "MINDBUS_LOG_LEVEL": "DEBUG"})

    for command in (
        ("status",),
        ("doctor", "--json"),
        ("queues", "--json"),
        ("history", "ls"),
        ("artifacts", "ls", "--json"),
    ):
        failed(shell, *command)
    require_none_in_files(tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        f"amqp://mindbus:{canary('a')}/{canary('b')}@127.0.0.1:9/",
        f"amqp://mindbus:{canary('a')}#{canary('b')}@127.0.0.1:9/",
        f"amqp://mindbus:{canary('a')}@127.0.0.1:port/",
    ],
)
def test_addresses_that_cannot_be_read_are_not_shown(url: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path, settings={"MINDBUS_AMQP_URL": url})

    for command in (("queues",), ("history", "ls"), ("doctor",), ("status",)):
        failed(shell, *command)


def test_a_refused_login_does_not_show_the_password(broker: Broker, tmp_path: Path) -> None:
    host = broker.amqp_url.rpartition("@")[2]
    url = f"amqp://mindbus:{canary('amqp')}@{host}"
    shell = Shell(tmp_path, settings={"MINDBUS_AMQP_URL": url, "MINDBUS_LOG_LEVEL": "DEBUG", **IMPATIENT})

    failed(shell, "history", "ls")
    failed(shell, "chat", "-m", "hello")
    require_none("".join(_said(shell.spawn("doctor"))), "doctor")


@pytest.mark.parametrize(
    ("worker", "settings"),
    [
        ("storage", {"MINDBUS_DATABASE_URL": DATABASE}),
        ("storage", {"MINDBUS_DATABASE_URL": f"no database at all:{canary('sql')}@"}),
        ("history", {"MINDBUS_REDIS_URL": REDIS}),
        ("swm", {"MINDBUS_REDIS_URL": REDIS, "MINDBUS_CACHE_REDIS_URL": REDIS}),
        ("glm", {"MINDBUS_QDRANT_URL": UNREACHABLE["MINDBUS_QDRANT_URL"]}),
        (
            "storage",
            {name: UNREACHABLE[name] for name in ("MINDBUS_ARTIFACTS_URL", "MINDBUS_S3_ENDPOINT_URL")},
        ),
    ],
)
def test_a_worker_that_cannot_begin_shows_no_secret(
    worker: str, settings: Mapping[str, str], vhost_url: str, tmp_path: Path
) -> None:
    shell = Shell(
        tmp_path / "data", settings={**SECRETS, "MINDBUS_AMQP_URL": vhost_url, "MINDBUS_LOG_LEVEL": "DEBUG", **settings}
    )
    log = tmp_path / "log"
    with log.open("wb") as sink, shell.start("worker", worker, to=sink) as process:
        try:
            eventually(lambda: process.poll() is not None or has_complained(log), 120, "a complaint")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    assert log.stat().st_size
    require_none(log.read_bytes(), worker)
    require_none_in_files(tmp_path / "data")


def has_complained(log: Path) -> bool:
    said = log.read_text(encoding="utf-8").lower()
    return "error" in said or "failed" in said or "warning" in said


def test_a_fleet_at_work_writes_no_secret(endpoint: str, tmp_path: Path) -> None:
    require_rabbitmq()
    model = {"MINDBUS_LLM_BASE_URL": endpoint, "MINDBUS_LLM_MODEL": "any"}
    shell = Shell(
        tmp_path / "data",
        settings={**SECRETS, **model, "MINDBUS_LOG_LEVEL": "DEBUG", "MINDBUS_GATEWAY_ACCESS": "token"},
    )
    workers = "storage,history,dialogue,tracker,gateway,mood_watcher,lsm"
    try:
        require_none("".join(_said(shell.spawn("up", "-d", "--workers", workers))), "up")
        require_none("".join(_said(shell.spawn("chat", "-m", "hello", "--user", "anna"))), "chat")
        logs = shell.data_dir / "logs"
        eventually(lambda: has_refused(logs), 120, "a refusal of the model that repeats the key, masked")
        url = shell.json("status")["gateway_url"]
        for headers in ({}, {"authorization": f"Bearer {canary('wrong')}"}, _bearer()):
            for path in ("/api/timeline", "/api/runs/no", "/api/openapi.json", "/login?ticket=1.2.3"):
                require_none(httpx.get(url + path, headers=headers, timeout=60).text, path)
        for pid, arguments in shell.processes().items():
            require_none(arguments, pid)
        for pid in [pid for pid, arguments in shell.processes().items() if "mindbus worker" in arguments][:1]:
            os.kill(pid, signal.SIGABRT)
        for command in (("status",), ("status", "--json"), ("doctor",), ("dlq", "ls", "--json"), ("events", "--json")):
            require_none("".join(_said(shell.spawn(*command))), command)
    finally:
        require_none("".join(_said(shell.spawn("down"))), "down")
    require_none_in_files(tmp_path)


def has_refused(logs: Path) -> bool:
    return any("Incorrect API key provided: ***" in log.read_text(encoding="utf-8") for log in logs.glob("*.log"))


def _bearer() -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS['MINDBUS_GATEWAY_TOKEN']}"}


def _said(ended: Ended) -> tuple[str, str]:
    return ended.stdout, ended.stderr
