"""A running fleet, observed: one tree of spans for a message and all that follows from it, one endpoint of metrics."""

import asyncio
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from bus_schema.lsm_search import Feedback, SearchEpisodes
from config.settings import FleetSettings
from gateway.access_tokens import token_file
from mindbus.bus.connection import connect
from mindbus.run_dir import gateway_url_file
from mindbus.testing.wait import eventually
from tests.command_line import Shell
from tests.otlp_collector import CollectedSpan, Collector, collecting
from tests.prometheus_server import promtool, queries_of_dashboards, require_prometheus, scraping

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(300)]

KEEPERS = ("storage", "history", "swm", "glm", "lsm", "tracker", "orchestrator")
AGENTS = ("task_manager", "context_manager", "context", "dialogue", "gateway")
HABITS = "default: {quiet_from: null, quiet_until: null, gap_minutes: 0}\nusers: {}\n"
MODELS = """\
endpoints: {scripted: {base_url: URL, api_key_from: SCRIPTED_KEY}}
roles: {dialogue: {endpoint: scripted, model: scripted-1}}
prices: {scripted-1: {input: 2.0, output: 10.0}}
"""
TOKEN = secrets.token_urlsafe(24)
SAID = "Boris must send the zephyrite report by Friday, please tell him."
ASKED = "When is the zephyrite report due?"


@dataclass(frozen=True)
class Observed:
    """A fleet with the collector that it exports to."""

    shell: Shell
    collector: Collector
    olgas_token: str

    @property
    def settings(self) -> FleetSettings:
        return FleetSettings(data_dir=self.shell.data_dir, amqp_url=self.shell.settings["MINDBUS_AMQP_URL"])

    @property
    def gateway_url(self) -> str:
        return gateway_url_file(self.settings).read_text()


@contextmanager
def scripted_model() -> Iterator[str]:
    """The URL of a model endpoint in a process of its own."""
    with subprocess.Popen([sys.executable, "-m", "tests.llm_server", "--port", "0"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[Observed]:
    """A dialogue runtime that makes a fragment of every exchange and exports to a collector."""
    folder = tmp_path_factory.mktemp("observed")
    own = folder / "own"
    own.mkdir()
    (folder / "habits.yaml").write_text(HABITS, encoding="utf-8")
    with scripted_model() as model, collecting() as collector:
        (own / "models.yaml").write_text(MODELS.replace("URL", model), encoding="utf-8")
        settings = fleet_settings | {
            "MINDBUS_HABITS": str(folder / "habits.yaml"),
            "MINDBUS_CONFIG_DIR": str(own),
            "SCRIPTED_KEY": "sk-none",
            "MINDBUS_DIALOGUE_MAX_MESSAGES": "2",
            "MINDBUS_GATEWAY_ACCESS": "token",
            "MINDBUS_METRICS_TOKEN": TOKEN,
            "MINDBUS_METRICS_INTERVAL_S": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        shell = Shell(folder / "data", settings=settings)
        try:
            shell.ok("up", "-d", "--workers", ",".join(KEEPERS + AGENTS), spawned=True)
            shell.ok("users", "add", "boris", "--name", "Boris", spawned=True)
            olga = shell.json("users", "add", "olga", "--name", "Olga", "--role", "user", spawned=True)
            shell.ok("chat", "--user", "anna", "--message", SAID, spawned=True)
            yield Observed(shell, collector, olga["token"])
        finally:
            shell.ok("down")


def test_a_message_its_processing_and_the_notification_are_one_tree(observed: Observed) -> None:
    collector = observed.collector
    eventually(lambda: collector.named("send notification.sent") != [], 60, "the notification is sent")
    (began,) = collector.named("send dialogue.invoke")

    def is_whole() -> bool:
        spans = collector.of_trace(began.trace_id)
        known = {each.span_id for each in spans}
        return [each.name for each in spans if each.parent_id not in known] == ["send dialogue.invoke"]

    eventually(is_whole, 30, "all spans of the story have come, and hang together")
    tree = collector.of_trace(began.trace_id)
    assert {each.trace_id for each in collector.named("send notification.sent")} == {began.trace_id}
    way = way_to("send notification.sent", tree)
    assert way[:3] == ["send dialogue.invoke", "queue mb.q.dialogue", "handle dialogue.invoke"]
    story = [name for name in way if name.startswith("handle ")]
    assert story == [
        "handle dialogue.invoke",
        "handle raw.dialogue_fragment",
        "handle notification.generated",
        "handle dialogue.deliver_notification",
    ]
    assert len({each.pid for each in tree}) == 3, "the command line, and both processes of workers"
    assert {each.service for each in tree} == {"cli", "mindbus"}
    handled_by = {each.attributes["mindbus.worker"] for each in tree if each.name.startswith("handle ")}
    assert handled_by >= {"dialogue", "storage", "lsm", "glm", "history", "task_manager", "context", "tracker"}


def test_statements_bytes_and_models_are_spans_within_the_handling(observed: Observed) -> None:
    (began,) = observed.collector.named("send dialogue.invoke")
    eventually(lambda: observed.collector.named("chat scripted-1") != [], 30, "the model was called")
    tree = {each.span_id: each for each in observed.collector.of_trace(began.trace_id)}
    model = next(each for each in tree.values() if each.name == "chat scripted-1")

    assert tree[model.parent_id].name == "handle dialogue.invoke"
    assert model.attributes["gen_ai.operation.name"] == "chat"
    assert model.attributes["gen_ai.request.model"] == "scripted-1"
    assert model.attributes["gen_ai.usage.input_tokens"] > 0
    assert model.attributes["gen_ai.usage.output_tokens"] > 0
    assert model.attributes["mindbus.price"] > 0
    kept = [each for each in tree.values() if within(each, "handle storage.save_message", tree)]
    assert {"SELECT", "INSERT", "COMMIT"} <= {each.name for each in kept}
    assert all(each.start_ns >= tree[each.parent_id].start_ns for each in kept)
    assert any(each.name == "blob promote" for each in tree.values())


def test_nothing_that_anybody_has_said_is_exported(observed: Observed) -> None:
    (began,) = observed.collector.named("send dialogue.invoke")

    assert len(observed.collector.of_trace(began.trace_id)) > 100
    for body in observed.collector.bodies:
        assert b"zephyrite" not in body.lower()
        assert TOKEN.encode() not in body


def test_workers_that_tell_how_they_are_make_no_traces(observed: Observed) -> None:
    assert not [each for each in observed.collector.spans if "heartbeat" in each.name or "fleet.metrics" in each.name]


def test_metrics_are_for_operators_and_for_whoever_has_their_token(observed: Observed) -> None:
    owner = token_file(observed.settings).read_text()
    with httpx.Client(base_url=observed.gateway_url, trust_env=False, timeout=60) as http:

        def status(token: str, path: str = "/metrics", method: str = "GET") -> int:
            return http.request(method, path, headers={"Authorization": f"Bearer {token}"}).status_code

        assert http.get("/metrics").status_code == 401
        assert (status(owner), status(TOKEN), status(observed.olgas_token), status("wrong" * 5)) == (200, 200, 403, 401)
        assert (status(TOKEN, "/api/workers"), status(TOKEN, method="POST")) == (401, 401)


def test_alert_rules_are_valid_and_fire_on_what_they_are_for() -> None:
    require_prometheus()

    checked, tested = promtool("check", "rules", "alerts.yml"), promtool("test", "rules", "alerts_test.yml")

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_prometheus_has_series_for_every_query_of_every_panel(observed: Observed, tmp_path: Path) -> None:
    require_prometheus()
    target = observed.gateway_url.removeprefix("http://")
    with scraping(target, TOKEN, tmp_path / "prometheus") as prometheus:
        eventually(prometheus.is_ready, 30, "Prometheus is ready")
        observed.shell.ok("chat", "--user", "anna", "--message", ASKED, spawned=True)
        asyncio.run(rate_a_search(observed.settings))
        empty: dict[str, str] = {}

        def all_have_series() -> bool:
            empty.clear()
            empty.update({panel: query for panel, query in queries_of_dashboards() if not prometheus.query(query)})
            return not empty

        try:
            eventually(all_have_series, 60, "every panel shows something")
        except AssertionError:
            raise AssertionError(f"no series: {json.dumps(empty, indent=1)}") from None
        (up,) = prometheus.query('up{job="mindbus"}')
        assert up["value"][1] == "1"
        assert len(prometheus.query("mindbus_worker_ready == 1")) == len(KEEPERS + AGENTS)
        assert not prometheus.query('ALERTS{alertstate="firing"}')
        (cost,) = prometheus.query("sum(mindbus_model_cost_total)")
        assert float(cost["value"][1]) > 0


async def rate_a_search(settings: FleetSettings) -> None:
    async with connect("user.anna", settings=settings) as bus:
        found = await bus.request(SearchEpisodes(chat_id="anna", query="zephyrite report", budget_words=500))
        assert found.search_id is not None
        used = tuple(turn.raw_log_id for episode in found.episodes for turn in episode.turns)[:1]
        await bus.request(Feedback(search_id=found.search_id, used=used))


def way_to(name: str, tree: list[CollectedSpan]) -> list[str]:
    """Names of the spans from the root to the first of that name."""
    by_id = {each.span_id: each for each in tree}
    span: CollectedSpan | None = next(each for each in tree if each.name == name)
    way: list[str] = []
    while span is not None:
        way.insert(0, span.name)
        span = by_id.get(span.parent_id)
    return way


def within(span: CollectedSpan, name: str, tree: dict[str, CollectedSpan]) -> bool:
    parent = tree.get(span.parent_id)
    return parent is not None and parent.name == name
