"""What the gateway shows and does for each account: its own to a user, all to an operator, nothing to a stranger."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from config.settings import FleetSettings
from gateway.access_tokens import token_file
from mindbus.accounts import AccessRole, Accounts, accounts_of
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.gateways import Served, gateway_settings, serving
from tests.installed import FLEET
from tests.llm_server import LlmServer, Says
from workers.dialogue.worker import DialogueWorker
from workers.sim.worker import SimWorker
from workers.tracker import TrackerWorker

pytestmark = pytest.mark.rabbit
MEMORY = tuple(FLEET[name] for name in ("storage", "history", "glm", "lsm", "swm", "orchestrator", "task_manager"))
SECRET = "the salary is 310000"
PAGE = {"Accept": "text/html"}

# Of what is boris's or the fleet's: status for anna, a user; olga, an operator; the agent scout.
OTHERS: dict[tuple[str, str], tuple[int, int, int]] = {
    ("GET", "/api/dialogues/boris/messages"): (403, 200, 403),
    ("POST", "/api/dialogues/boris/messages"): (403, 200, 403),
    ("PUT", "/api/dialogues/boris/messages/msg_1/rating"): (403, 403, 403),
    ("POST", "/api/dialogues/boris/end"): (403, 200, 403),
    ("GET", "/api/dialogues/boris/subagents"): (403, 0, 403),
    ("GET", "/api/timeline?user=boris"): (403, 200, 403),
    ("GET", "/api/timeline/buckets?since=2026-01-01T00:00:00Z&user=boris"): (403, 200, 403),
    ("GET", "/api/events?user=boris"): (403, 0, 403),
    ("GET", "/api/tasks?user=boris"): (403, 200, 403),
    ("POST", "/api/tasks"): (403, 201, 403),
    ("GET", "/api/facts?user=boris"): (403, 503, 403),
    ("GET", "/api/memory/kems?user=boris"): (403, 200, 403),
    ("GET", "/api/memory/stats?user=boris"): (403, 200, 403),
    ("GET", "/api/memory/changes?user=boris"): (403, 0, 403),
    ("GET", "/api/episodes?chat=boris"): (403, 200, 403),
    ("GET", "/api/episodes"): (403, 200, 403),
    ("POST", "/api/episodes/messages"): (403, 200, 403),
    ("POST", "/api/commands/storage.collect_garbage"): (403, 200, 403),
    ("GET", "/api/episodes/search?q=salary&chat=boris"): (403, 200, 403),
    ("PUT", "/api/users/boris"): (403, 200, 403),
    ("GET", "/api/histories?chat=boris"): (403, 200, 403),
    ("GET", "/api/histories/chat_history:boris"): (403, 200, 403),
    ("POST", "/api/histories/chat_history:boris/messages"): (403, 201, 403),
    ("DELETE", "/api/histories/chat_history:boris"): (403, 204, 403),
    ("GET", "/api/workers"): (403, 200, 403),
    ("GET", "/api/queues"): (403, 200, 403),
    ("GET", "/api/dead-letters"): (403, 200, 403),
    ("POST", "/api/dead-letters/storage/drop"): (403, 200, 403),
    ("POST", "/api/sim/start"): (403, 404, 403),
    ("GET", "/api/sim"): (403, 200, 403),
    ("POST", "/api/sim/stop"): (403, 404, 403),
}
BODIES: Mapping[str, Any] = {
    "/api/episodes/messages": {
        "chat": "boris",
        "messages": [{"role": "user", "content": SECRET, "time": "2026-03-10T09:00:00Z"}],
    },
    "/api/users/boris": {"name": "Boris", "projects": ["apollo"]},
    "/api/histories/chat_history:boris/messages": {"messages": [{"role": "user", "content": SECRET}]},
    "/api/commands/storage.collect_garbage": {"dry_run": True},
    "/api/dialogues/boris/messages": {"message": SECRET},
    "/api/dialogues/boris/messages/msg_1/rating": {"rating": "helpful"},
    "/api/tasks": {"user": "boris", "text": "pay the bill"},
    "/api/dead-letters/storage/drop": {"all": True},
    "/api/sim/start": {"profiles": "nobody"},
}


@pytest.fixture
def settings(broker: Broker, vhost_url: str, migrated_folder: Path) -> FleetSettings:
    return gateway_settings(broker, vhost_url, migrated_folder, gateway_access="token")


@pytest.fixture
def accounts(settings: FleetSettings) -> Accounts:
    return accounts_of(settings)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def status_of(http: httpx.AsyncClient, method: str, path: str, token: str) -> int:
    """Status of an answer; 0 for a stream that has begun."""
    body = BODIES.get(path)
    async with http.stream(method, path, headers=bearer(token), json=body) as answer:
        if answer.headers["content-type"].startswith("text/event-stream"):
            return 0
        await answer.aread()
    return answer.status_code


async def test_a_user_sees_what_is_theirs_an_operator_all_and_a_stranger_nothing(
    settings: FleetSettings, accounts: Accounts
) -> None:
    anna, boris = accounts.add("anna", AccessRole.USER), accounts.add("boris", AccessRole.USER)
    olga, scout = accounts.add("olga", AccessRole.OPERATOR), accounts.add("scout", AccessRole.AGENT)
    async with serving(*MEMORY, DialogueWorker, SimWorker, TrackerWorker, settings=settings) as gateway:
        http = gateway.http
        said = await http.post("/api/dialogues/boris/messages", headers=bearer(boris), json={"message": SECRET})
        assert said.status_code == 200, said.text
        own = await http.post("/api/dialogues/anna/messages", headers=bearer(anna), json={"message": "Hello"})
        assert own.status_code == 200, own.text
        await until(lambda: _has_events(gateway, olga, "boris"))

        found = {
            (method, path): tuple([await status_of(http, method, path, token) for token in (anna, olga, scout)])
            for method, path in OTHERS
        }
        assert found == OTHERS
        assert {await status_of(http, *row, "no such token at all") for row in list(OTHERS)[:5]} == {401}

        await _sees_no_other(http, anna)
        everything = (await http.get("/api/timeline?limit=500", headers=bearer(olga))).text
        assert SECRET in everything


async def _has_events(gateway: Served, token: str, user: str) -> bool:
    page = (await gateway.http.get(f"/api/timeline?user={user}&limit=500", headers=bearer(token))).json()
    return "message_sent" in {item["name"] for item in page["items"]}


async def _sees_no_other(http: httpx.AsyncClient, token: str) -> None:
    """Whatever is listed to a user without a name is the user's own."""
    for path in ("/api/dialogues", "/api/timeline?limit=500", "/api/runs", "/api/tasks?user=anna", "/api/memory/kems"):
        answer = await http.get(path, headers=bearer(token))
        assert answer.status_code == 200, (path, answer.text)
        assert "310000" not in answer.text, path
        assert "boris" not in answer.text, path
    page = (await http.get("/api/timeline?limit=500", headers=bearer(token))).json()
    assert {item["user_id"] for item in page["items"]} == {"anna"}
    assert [item["user_id"] for item in (await http.get("/api/dialogues", headers=bearer(token))).json()["items"]] == [
        "anna"
    ]


async def test_a_stream_has_the_events_of_its_subject_alone_and_ends_when_the_account_is_revoked(
    settings: FleetSettings, accounts: Accounts
) -> None:
    anna = accounts.add("anna", AccessRole.USER)
    owner = ""
    heard: list[Any] = []
    async with serving(*MEMORY, DialogueWorker, TrackerWorker, settings=settings) as gateway:
        owner = await asyncio.to_thread(token_file(settings).read_text)

        async def listen() -> None:
            async with gateway.stream("GET", "/api/events", headers=bearer(anna)) as frames:
                heard.append("begun")
                async for frame in frames:
                    heard.append(frame.data)

        listening = asyncio.create_task(listen())
        await until(lambda: bool(heard))
        for user in ("boris", "anna"):
            path = f"/api/dialogues/{user}/messages"
            said = await gateway.http.post(path, headers=bearer(owner), json={"message": f"I am {user}"})
            assert said.status_code == 200
        await until(lambda: any(event != "begun" and event["name"] == "message_sent" for event in heard))

        accounts.revoke("user.anna")
        said = await gateway.http.post(
            "/api/dialogues/anna/messages", headers=bearer(owner), json={"message": "not for a revoked account"}
        )
        await asyncio.wait_for(listening, 30)
        assert (await gateway.http.get("/api/runs", headers=bearer(anna))).status_code == 401

    assert {event["user_id"] for event in heard[1:]} == {"anna"}
    assert "boris" not in str(heard)


async def test_a_session_is_kept_on_the_server_and_ends_there(settings: FleetSettings, accounts: Accounts) -> None:
    anna = accounts.add("anna", AccessRole.USER)
    async with serving(FLEET["orchestrator"], settings=settings) as gateway:
        http = gateway.http
        entered = await http.post("/login", data={"token": anna, "next": "/chat"})
        cookie = dict(http.cookies)
        inside = await http.get("/api/runs")
        await http.post("/logout")
        http.cookies.update(cookie)
        left = await http.get("/api/runs")
        http.cookies.clear()
        await http.post("/login", data={"token": anna})
        again = await http.get("/api/runs")
        accounts.revoke("user.anna")
        revoked = await http.get("/api/runs")
        refused = await http.post("/login", data={"token": anna})

    assert (entered.status_code, entered.headers["location"]) == (303, "/chat")
    assert [answer.status_code for answer in (inside, left, again, revoked, refused)] == [200, 401, 200, 401, 401]


async def test_a_token_that_may_read_changes_nothing_and_opens_no_page(
    settings: FleetSettings, accounts: Accounts
) -> None:
    token = accounts.add("anna", AccessRole.USER, can_write=False)
    async with serving(FLEET["orchestrator"], settings=settings) as gateway:
        read = await gateway.http.get("/api/runs", headers=bearer(token))
        written = await gateway.no("POST", "/api/runs", headers=bearer(token), json={})
        page = await gateway.http.get("/chat", headers=bearer(token) | PAGE)
        login = await gateway.http.post("/login", data={"token": token})

    assert read.status_code == 200
    assert written == (403, "unauthorized", "this token may only read, and only the HTTP API")
    assert (page.status_code, login.status_code) == (403, 401)


async def test_who_asks_too_often_waits_while_others_do_not(settings: FleetSettings, accounts: Accounts) -> None:
    anna, boris = accounts.add("anna", AccessRole.USER), accounts.add("boris", AccessRole.USER)
    few = settings.model_copy(update={"gateway_requests_per_minute": 3})
    async with serving(FLEET["orchestrator"], settings=few) as gateway:
        asked = [await gateway.http.get("/api/cards", headers=bearer(anna)) for _ in range(5)]
        other = await gateway.http.get("/api/cards", headers=bearer(boris))

    assert [answer.status_code for answer in asked] == [200, 200, 200, 429, 429]
    assert 0 < int(asked[-1].headers["retry-after"]) <= 61
    assert other.status_code == 200


CARD = {
    "name": "note",
    "steps": [
        {
            "id": "note",
            "role": "researcher",
            "inputs": ["brief"],
            "produces": "research_report",
            "instructions": "Note.",
        }
    ],
    "result": "note",
}


@asynccontextmanager
async def with_budget(settings: FleetSettings) -> AsyncIterator[Served]:
    """A fleet with a model that always says the same, and a token a day for everybody."""
    async with LlmServer(otherwise=lambda _request: Says("Mail olga@example.org.")) as server:
        changed = {"user_tokens_per_day": 1, "llm_base_url": server.base_url, "llm_model": "small"}
        few = settings.model_copy(update=changed | {"model_calls_redact": r"[\w.]+@[\w.]+"})
        async with serving(*MEMORY, DialogueWorker, FLEET["researcher"], settings=few) as gateway:
            yield gateway


async def said(gateway: Served, user: str, token: str) -> httpx.Response:
    path, message = f"/api/dialogues/{user}/messages", {"message": "How are you?"}
    return await gateway.http.post(path, headers=bearer(token), json=message)


async def found(gateway: Served, path: str, token: str) -> Any:
    """The answer, or its status where it is a refusal."""
    answer = await gateway.http.get(path, headers=bearer(token))
    return answer.json() if answer.is_success else answer.status_code


async def test_what_models_use_for_a_person_is_kept_for_them_and_spends_the_budget_of_their_day(
    settings: FleetSettings, accounts: Accounts
) -> None:
    anna, boris = accounts.add("anna", AccessRole.USER), accounts.add("boris", AccessRole.USER)
    olga, day = accounts.add("olga", AccessRole.OPERATOR), f"{datetime.now(UTC):%Y-%m-%d}"
    async with with_budget(settings) as gateway:
        first = await said(gateway, "anna", anna)
        await until(lambda: accounts.spent("user.anna", day) > 1)
        second, operators = await said(gateway, "anna", anna), [await said(gateway, "olga", olga) for _ in range(2)]
        order = {"user_id": "anna", "message": "How are you?"}
        around = await gateway.http.post("/api/commands/dialogue.invoke", headers=bearer(anna), json=order)
        path = f"/api/dialogues/anna/messages/{first.json()['response_id']}/calls"
        hers, operators_view, strangers = [await found(gateway, path, token) for token in (anna, olga, boris)]

    assert (first.status_code, second.status_code, around.status_code) == (200, 429, 429)
    assert 0 < int(second.headers["retry-after"]) <= 86_401
    assert "go on tomorrow" in second.json()["detail"]
    assert [answer.status_code for answer in operators] == [200, 200]
    assert (hers["items"], strangers) == (operators_view["items"], 403)
    (kept,) = hers["items"]
    assert (kept["call"]["caller"], kept["call"]["model_name"]) == ("svc.dialogue", "scripted-1")
    assert "How are you?" in kept["call"]["prompt"][-1]["content"]
    assert kept["call"]["answer"]["content"] == "Mail ***"


async def test_a_run_waits_for_an_operator_once_the_budget_of_its_starter_is_spent(
    settings: FleetSettings, accounts: Accounts
) -> None:
    anna, boris = accounts.add("anna", AccessRole.USER), accounts.add("boris", AccessRole.USER)
    olga, day = accounts.add("olga", AccessRole.OPERATOR), f"{datetime.now(UTC):%Y-%m-%d}"
    async with with_budget(settings) as gateway:
        await said(gateway, "anna", anna)
        await until(lambda: accounts.spent("user.anna", day) > 1)
        order = {"card": CARD, "briefs": ["# Tea\n\nTea is made of leaves."]}
        started = await gateway.http.post("/api/runs", headers=bearer(anna), json=order)
        path = f"/api/runs/{started.json()['run_id']}"

        async def paused() -> Any:
            run = await found(gateway, path, anna)
            return run if run["status"] == "paused" else None

        async def calls() -> Any:
            return (await found(gateway, f"{path}/calls", anna))["items"]

        run = await until(paused, 30)
        resumed = [(await gateway.http.post(f"{path}/resume", headers=bearer(token))).json() for token in (anna, olga)]
        made = await until(calls, 30)
        strangers = await found(gateway, f"{path}/calls", boris)

    assert "tokens of user.anna for today" in run["reason"]
    assert [each["status"] for each in resumed] == ["paused", "running"]
    assert {(each["step_id"], each["call"]["caller"]) for each in made} == {("note", "svc.researcher")}
    assert strangers == 404


@pytest.mark.parametrize("trusted", ["", "127.0.0.1"])
async def test_wrong_tokens_are_counted_by_the_address_that_a_trusted_proxy_names_and_no_other(
    settings: FleetSettings, trusted: str
) -> None:
    behind = settings.model_copy(update={"gateway_trusted_proxies": trusted})
    async with serving(settings=behind) as gateway:
        statuses = []
        for number in range(12):
            forwarded = {"X-Forwarded-For": f"10.0.0.{number}"}
            statuses.append((await gateway.http.get("/api/runs", headers=bearer("wrong") | forwarded)).status_code)

    assert statuses == [401] * 12 if trusted else [401] * 10 + [429] * 2


async def test_the_description_of_the_api_is_behind_the_same_door_and_every_answer_has_a_policy(
    settings: FleetSettings,
) -> None:
    async with serving(settings=settings) as gateway:
        outside = {path: await gateway.http.get(path) for path in ("/api/openapi.json", "/docs", "/redoc", "/login")}

    assert [answer.status_code for answer in outside.values()] == [401, 401, 401, 200]
    assert all("default-src '" in answer.headers["content-security-policy"] for answer in outside.values())
