"""A2A, asked by the official client, unmodified: send, stream, answer, cancel, push; what a stranger sees."""

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import Client
from a2a.client.errors import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError

from agents.configuration.prompts import shipped_role
from benchmarks.servers.workers import Workers, workers_of
from bus_schema.cards import Card, CardStep
from bus_schema.subagent import ExecuteTask, service_of
from config.settings import FleetSettings
from gateway.access_tokens import token_of
from mindbus import WorkerContext
from mindbus.accounts import AccessRole, accounts_of
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.fleets import fleet_of
from tests.gateways import Served, gateway_settings, serving
from tests.installed import FLEET
from tests.llm_server import Drips, LlmServer, Says
from tests.webhook_receiver import Receiver, receiving
from workers.creative import CreativeWorker
from workers.dialogue.worker import DialogueWorker
from workers.subagent_file import FileSubagent

pytestmark = pytest.mark.rabbit
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "a2a.md"
WORKERS = ("storage", "history", "tracker", "orchestrator", "researcher", "subagent-analytic")
# Longer than an event shows.
LONG_ANSWER = " ".join(f"{number} and {number} are {2 * number}." for number in range(300))
CARD = """\
name: look-up
description: Finds out, then asks whether that is enough.
public: true
parameters:
  depth: {type: string, choices: [short, long], default: short, description: How far to go.}
steps:
  - {id: notes, role: researcher, produces: research_report, instructions: Find out.}
  - {id: enough, approve: Is this enough?, inputs: [notes]}
result: notes
"""


@pytest.fixture
def settings(
    broker: Broker, vhost_url: str, migrated_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FleetSettings:
    cards = tmp_path / "own" / "cards"
    cards.mkdir(parents=True)
    (cards / "look-up.yaml").write_text(CARD)
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(cards.parent))
    return gateway_settings(broker, vhost_url, migrated_folder, gateway_access="token")


@asynccontextmanager
async def agent(settings: FleetSettings) -> AsyncIterator[Served]:
    async with serving(*(FLEET[name] for name in WORKERS), DialogueWorker, settings=settings) as served:
        yield served


@asynccontextmanager
async def client_of(url: str, token: str = "", binding: str = "JSONRPC") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], use_client_preference=True)
        yield ClientFactory(config).create(card)


def asking(text: str, message_id: str, *, task_id: str = "", **metadata: Any) -> SendMessageRequest:
    message = Message(message_id=message_id, task_id=task_id, role=Role.ROLE_USER, parts=[Part(text=text)])
    message.metadata.update(metadata)
    return SendMessageRequest(message=message)


async def sent(client: Client, request: SendMessageRequest) -> list[StreamResponse]:
    return [event async for event in client.send_message(request)]


def task_of(events: list[StreamResponse]) -> Task:
    return next(event.task for event in events if event.HasField("task"))


def text_of(events: list[StreamResponse]) -> str:
    """The artifact as a client puts it together: whole in a task that was over at once, else by its updates."""
    text = ""
    for event in events:
        if event.HasField("task"):
            text = "".join(part.text for artifact in event.task.artifacts for part in artifact.parts)
        if event.HasField("artifact_update"):
            piece = "".join(part.text for part in event.artifact_update.artifact.parts)
            text = text + piece if event.artifact_update.append else piece
    return text


def last_state(events: list[StreamResponse]) -> TaskState:
    changes = [event.status_update.status for event in events if event.HasField("status_update")]
    return changes[-1].state if changes else events[-1].task.status.state


async def test_cards(settings: FleetSettings) -> None:
    anna = accounts_of(settings).add("anna", AccessRole.USER)
    async with agent(settings) as served:
        url = served.worker.url
        async with client_of(url) as nobody, client_of(url, anna) as client:
            async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
                public = await A2ACardResolver(http, url).get_agent_card()
            assert [skill.id for skill in public.skills] == ["dialogue", "card/look-up"]
            assert {each.protocol_binding for each in public.supported_interfaces} == {"JSONRPC", "HTTP+JSON"}
            extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
            skills = {skill.id for skill in extended.skills}
            assert {"dialogue", "card/look-up", "card/article", "role/critic", "subagent/analytic"} <= skills
            with pytest.raises((A2AClientError, A2AError)):
                await nobody.get_extended_agent_card(GetExtendedAgentCardRequest())


async def test_a_private_card(settings: FleetSettings) -> None:
    anna = accounts_of(settings).add("anna", AccessRole.USER)
    async with agent(settings.model_copy(update={"a2a_card": "private"})) as served:
        path = f"{served.worker.url}/.well-known/agent-card.json"
        assert (await served.http.get(path)).status_code == 401
        assert (await served.http.get(path, headers={"Authorization": f"Bearer {anna}"})).status_code == 200


async def test_bodies_that_nobody_can_read_are_refused_and_are_no_errors_here(
    settings: FleetSettings, caplog: pytest.LogCaptureFixture
) -> None:
    anna = accounts_of(settings).add("anna", AccessRole.USER)
    request = {"jsonrpc": "2.0", "id": 1}
    nowhere = {"method": "SubscribeToTask", "params": {"id": "run_nowhere"}}
    signed = {"Authorization": f"Bearer {anna}"}
    async with agent(settings) as served:
        for body in (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "GetTask"}', b'{"\xff": 1}', b"[" * 100_000):
            refused = await served.http.post(f"{served.worker.url}/a2a", content=body, headers=signed)
            assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
        signed |= {"A2A-Version": "1.0"}
        for wrong in ([1], request | {"method": "GetTask", "params": 5}, request | nowhere):
            answer = await served.http.post(f"{served.worker.url}/a2a", json=wrong, headers=signed)
            assert '"error"' in answer.text
    of_library = [each for each in caplog.records if each.name.startswith("a2a.")]
    assert [(each.levelname, each.exc_info) for each in of_library] == 3 * [("WARNING", None)]


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_questions_and_runs(settings: FleetSettings, binding: str) -> None:
    accounts = accounts_of(settings)
    anna, boris = accounts.add("anna", AccessRole.USER), accounts.add("boris", AccessRole.USER)
    async with LlmServer(Says("It is sunny in Oslo, as far as I know."), Says("Rain."), Says(LONG_ANSWER)) as model:
        own = {"llm_base_url": model.base_url, "llm_model": "small"}
        async with (
            agent(settings.model_copy(update=own)) as served,
            client_of(served.worker.url, anna, binding) as client,
            client_of(served.worker.url, boris, binding) as stranger,
        ):
            talk = await questions(client)
            assert len(model.requests) == 2  # sent again, a message asks nothing new
            delegation = await delegations(client)
            assert len(model.requests) == 3
            run = await runs(client)
            for task_id in (talk, run, delegation):
                await sees_nothing(stranger, task_id)


async def questions(client: Client) -> str:
    events = await sent(client, asking("How is the weather?", "m1"))
    assert text_of(events) == "It is sunny in Oslo, as far as I know."
    assert last_state(events) == TaskState.TASK_STATE_COMPLETED
    task = task_of(events)
    again = await sent(client, asking("How is the weather?", "m1"))
    assert task_of(again).id == task.id
    kept = await client.get_task(GetTaskRequest(id=task.id))
    assert kept.artifacts[0].parts[0].text == "It is sunny in Oslo, as far as I know."
    await sent(client, asking("And tomorrow?", "m2"))
    listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id, include_artifacts=True))
    assert [each.history[0].parts[0].text for each in listed.tasks] == ["And tomorrow?", "How is the weather?"]
    return str(task.id)


async def runs(client: Client) -> str:
    params = {"depth": "long"}
    events = await sent(client, asking("# Wind\n\nWhere does it come from?", "m3", skill="card/look-up", params=params))
    assert last_state(events) == TaskState.TASK_STATE_INPUT_REQUIRED
    run = task_of(events).id
    assert "wind" in text_of(events).lower()
    with pytest.raises((A2AClientError, A2AError), match="approve"):
        await sent(client, asking("Perhaps.", "m4", task_id=run))
    done = await sent(client, asking("Approve, it will do.", "m5", task_id=run))
    assert last_state(done) == TaskState.TASK_STATE_COMPLETED
    assert run in [task.id for task in (await client.list_tasks(ListTasksRequest())).tasks]
    stopped = task_of(await sent(client, asking("# Rain", "m6", skill="card/look-up"))).id
    cancelled = await client.cancel_task(CancelTaskRequest(id=stopped))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
    with pytest.raises((A2AClientError, A2AError), match="no skill"):
        await sent(client, asking("Hello", "m7", skill="cook/soup"))
    return str(run)


async def delegations(client: Client) -> str:
    events = await sent(client, asking("What is 2 + 2?", "m8", skill="subagent/analytic"))
    assert (last_state(events), text_of(events)) == (TaskState.TASK_STATE_COMPLETED, LONG_ANSWER)
    task = task_of(events)
    assert task_of(await sent(client, asking("What is 2 + 2?", "m8", skill="subagent/analytic"))).id == task.id
    kept = await client.get_task(GetTaskRequest(id=task.id))
    assert (kept.artifacts[0].parts[0].text, kept.metadata["subagent"]) == (LONG_ANSWER, "analytic")
    assert kept.history[0].parts[0].text == "What is 2 + 2?"
    with pytest.raises((A2AClientError, A2AError), match="over"):
        await client.cancel_task(CancelTaskRequest(id=task.id))
    unknown = asking("Cook.", "m9", skill="subagent/cook")
    with pytest.raises((A2AClientError, A2AError), match="no skill"):
        await sent(client, unknown)
    return str(task.id)


async def sees_nothing(stranger: Client, task_id: str) -> None:
    for call in (
        stranger.get_task(GetTaskRequest(id=task_id)),
        stranger.cancel_task(CancelTaskRequest(id=task_id)),
        sent(stranger, asking("approve", "x", task_id=task_id)),
        anext(aiter(stranger.subscribe(SubscribeToTaskRequest(id=task_id)))),
        stranger.create_task_push_notification_config(
            TaskPushNotificationConfig(task_id=task_id, url="https://example.com/")
        ),
    ):
        with pytest.raises((A2AClientError, A2AError)):
            await call
    assert not (await stranger.list_tasks(ListTasksRequest())).tasks


def states_received() -> list[str]:
    return [body["task"]["status"]["state"] for _, body, _ in Receiver.received]


async def test_tasks_survive_kill_9(settings: FleetSettings) -> None:
    """The gateway and the orchestrator are killed amid a run, and amid an answer; a client goes on where it was."""
    anna = accounts_of(settings).add("anna", AccessRole.USER)
    port = free_port()
    script = (Drips(0.05, "word " * 60 + "end."), Says("# Notes\n\nWind comes from the west."))
    last = Says("Forty-two.")
    async with LlmServer(*script, otherwise=lambda _request: last, delay=timedelta(seconds=1)) as model:
        own = {"llm_base_url": model.base_url, "llm_model": "small"}
        changed = own | {"gateway_port": port, "gateway_webhook_hosts": "127.0.0.0/8"}
        settings = settings.model_copy(update=changed)
        with receiving() as hook, workers_of(settings) as processes:
            makers = [FLEET[name] for name in ("storage", "history", "tracker", "researcher")]
            async with fleet_of(*makers, DialogueWorker, settings=settings):
                await processes.start("orchestrator", "gateway", "subagent-analytic")
                url = f"http://127.0.0.1:{port}"
                talk = await begun(url, anna, asking("Say it all.", "m1"), pieces=2)
                await killed(processes, "gateway")
                async with client_of(url, anna) as client:
                    assert await whole_answer(client, talk.id) == "word " * 60 + "end."
                await a_run_survives(url, anna, hook, processes)
                given = await begun(url, anna, asking("What is it?", "m4", skill="subagent/analytic"))
                await killed(processes, "gateway", "subagent-analytic")
                async with client_of(url, anna) as client:
                    assert await whole_answer(client, given.id) == "Forty-two."
                    stopped = await begun(url, anna, asking("And now?", "m5", skill="subagent/analytic"))
                    await is_cancelled(client, stopped.id)


async def is_cancelled(client: Client, task_id: str) -> None:
    async def state() -> TaskState:
        return (await client.get_task(GetTaskRequest(id=task_id))).status.state

    async def is_kept() -> bool:
        return await state() == TaskState.TASK_STATE_CANCELED

    cancelled = await client.cancel_task(CancelTaskRequest(id=task_id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
    await until(is_kept, 30)
    with pytest.raises((A2AClientError, A2AError), match="over"):
        await client.cancel_task(CancelTaskRequest(id=task_id))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def begun(url: str, token: str, request: SendMessageRequest, pieces: int = 0) -> Task:
    """The task of a message whose stream is left after so many pieces."""
    async with client_of(url, token) as client:
        events: list[StreamResponse] = []
        async for event in client.send_message(request):
            events.append(event)
            if len(events) > pieces:
                break
    return task_of(events)


async def killed(processes: Workers, *names: str) -> None:
    for name in names[1:]:
        processes.strike(name)
    await processes.kill(names[0])


async def whole_answer(client: Client, task_id: str) -> str:
    async def is_over() -> bool:
        return (await client.get_task(GetTaskRequest(id=task_id))).status.state == TaskState.TASK_STATE_COMPLETED

    await until(is_over, 30)
    return str((await client.get_task(GetTaskRequest(id=task_id))).artifacts[0].parts[0].text)


async def a_run_survives(url: str, token: str, hook: str, processes: Workers) -> None:
    request = asking("# Wind", "m2", skill="card/look-up")
    push = TaskPushNotificationConfig(url=hook, token="told-by-mindbus", id="p1")
    push.authentication.scheme, push.authentication.credentials = "Bearer", "hook-secret"
    request.configuration.task_push_notification_config.CopyFrom(push)
    run = await begun(url, token, request)
    assert run.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
    await killed(processes, "gateway", "orchestrator")
    async with client_of(url, token) as client:
        events = [event async for event in client.subscribe(SubscribeToTaskRequest(id=run.id))]
        assert last_state(events) == TaskState.TASK_STATE_INPUT_REQUIRED
        await until(lambda: "TASK_STATE_INPUT_REQUIRED" in states_received(), 60)
        listed = await client.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id=run.id)
        )
        assert [(each.id, each.authentication.credentials) for each in listed.configs] == [("p1", "")]
        odd = TaskPushNotificationConfig(task_id=run.id, url=hook, token="жетон")
        with pytest.raises((A2AClientError, A2AError), match="ASCII"):
            await client.create_task_push_notification_config(odd)
        Receiver.away = 1
        done = await sent(client, asking("yes", "m3", task_id=run.id))
        assert last_state(done) == TaskState.TASK_STATE_COMPLETED
    await killed(processes, "gateway")
    await until(lambda: "TASK_STATE_COMPLETED" in states_received(), 60)
    headers, body, _ = Receiver.received[-1]
    assert headers["X-A2A-Notification-Token"] == "told-by-mindbus"
    assert headers["Authorization"] == "Bearer hook-secret"
    assert "Wind comes from the west" in body["task"]["artifacts"][0]["parts"][0]["text"]


async def test_the_program_of_the_guide(settings: FleetSettings) -> None:
    (program,) = re.findall(r"```python\n(.+?)```", GUIDE.read_text(), re.S)
    token = accounts_of(settings).add("acme", AccessRole.USER)
    async with (
        LlmServer() as model,
        serving(
            *(FLEET[name] for name in ("storage", "orchestrator", "pushkin", "critic", "editor", "researcher")),
            settings=settings.model_copy(update={"llm_base_url": model.base_url, "llm_model": "small"}),
        ) as served,
    ):
        environment = {**os.environ, "MINDBUS_URL": served.worker.url, "MINDBUS_TOKEN": token}
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", dedent(program)), env=environment, stdout=asyncio.subprocess.PIPE
        )
        told = (await asyncio.wait_for(running.communicate(), 60))[0].decode()
    assert "wind" in told.lower()
    assert told.splitlines()[-1] == "TASK_STATE_COMPLETED"


REMOTE_SUBAGENT = """\
name: partner
description: Another company's assistant.
a2a: {{url: "{url}", headers: {{Authorization: "Bearer ${{PARTNER_TOKEN}}"}}}}
"""
REMOTE_ROLE = """\
name: partner_writer
description: Another company's writer.
prompt_version: 1.0.0
system: You write.
max_rounds: 0
produces: {{research_report: {{write: Write., check: Check.}}}}
a2a: {{url: "{url}", headers: {{Authorization: "Bearer ${{PARTNER_TOKEN}}"}}, skill: card/look-up}}
"""


class Partner(FileSubagent):
    name = "subagent-partner"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context, "partner")


class PartnerWriter(CreativeWorker):
    name = "partner_writer"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context, shipped_role("partner_writer"))


async def test_agents_of_others_as_subagent_and_role(
    settings: FleetSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here they are our own gateway's: its answers come back over A2A."""
    token = accounts_of(settings).add("partner", AccessRole.USER)
    monkeypatch.setenv("PARTNER_TOKEN", token)
    port = free_port()
    for kind, text in (("subagents/partner", REMOTE_SUBAGENT), ("roles/partner_writer", REMOTE_ROLE)):
        file = tmp_path / "own" / f"{kind}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.format(url=f"http://127.0.0.1:{port}"))
    script = (Says("We have 28 chairs."),)
    async with LlmServer(*script) as model:
        own = {"llm_base_url": model.base_url, "llm_model": "small", "gateway_port": port}
        makers = [FLEET[name] for name in WORKERS]
        async with serving(
            *makers, DialogueWorker, Partner, PartnerWriter, settings=settings.model_copy(update=own)
        ) as served:
            order = ExecuteTask(task="How many chairs have you?", chat_id="anna", delegation_id="dlg_1")
            bus = served.worker.backend.bus
            first = await bus.acting_as("user.anna").request(order, to=service_of("partner"), timeout_s=30)
            assert first.response == "We have 28 chairs."
            step = CardStep(id="text", role="partner_writer", instructions="Write.", produces="research_report")
            body = {"card": Card(name="elsewhere", steps=(step,), result="text").model_dump(mode="json")}
            run = await served.ok("POST", "/api/runs", json={**body, "briefs": ["# Wind"]}, headers=operator(settings))

            async def is_over() -> bool:
                found = await served.ok("GET", f"/api/runs/{run['run_id']}", headers=operator(settings))
                return str(found["status"]) in ("completed", "failed")

            await until(is_over, 60)
            found = await served.ok("GET", f"/api/runs/{run['run_id']}", headers=operator(settings))
    assert found["status"] == "completed", found


def operator(settings: FleetSettings) -> dict[str, str]:
    token = token_of(settings)
    return {"Authorization": f"Bearer {token.text if token else ''}"}
