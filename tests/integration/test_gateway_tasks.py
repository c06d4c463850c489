"""Tasks and facts over HTTP, and long lists of them over every way to ask: none is lost, none comes twice."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bus_schema.facts import SaveFacts
from bus_schema.processing import Fact, Task, TaskStatus
from bus_schema.task_records import SaveTasks, TaskWrite
from bus_schema.tasks import ListTasks
from bus_schema.users import PutUser, User
from config.settings import FleetSettings
from mindbus.sdk.requests import items_of
from tests.brokers import Broker
from tests.command_line import Shell
from tests.gateways import Served, gateway_settings, serving
from tests.installed import FLEET

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(180)]
NOON = datetime(2030, 3, 10, 12, tzinfo=UTC)
KEEPERS = tuple(FLEET[name] for name in ("storage", "task_manager", "context_manager"))


@pytest.fixture
def settings(broker: Broker, vhost_url: str, migrated_folder: Path) -> FleetSettings:
    return gateway_settings(broker, vhost_url, migrated_folder)


async def add_people(gateway: Served) -> None:
    for user_id, name in (("anna", "Анна"), ("boris", "Борис")):
        await gateway.bus.request(PutUser(user=User(user_id=user_id, name=name, zone="Europe/Moscow")))


async def test_a_task_from_its_first_word_to_its_end(settings: FleetSettings) -> None:
    async with serving(*KEEPERS, settings=settings) as gateway:
        await add_people(gateway)
        new = {"user": "anna", "text": "Проверить договор", "owner": "Борис", "when": "2030-05-06 15:00"}
        added = await gateway.ok("POST", "/api/tasks", json=new)
        path = f"/api/tasks/{added['task_id']}"
        read = await gateway.ok("GET", path, params={"user": "boris"})
        edit = {"when": "2030-05-07", "text": "Проверить договор ещё раз"}
        moved = await gateway.ok("PATCH", path, params={"user": "boris"}, json=edit)
        done = await gateway.ok("PATCH", path, params={"user": "boris"}, json={"status": "done"})
        reopened = await gateway.ok("PATCH", path, params={"user": "anna"}, json={"status": "open"})
        cancelled = await gateway.ok("PATCH", path, params={"user": "anna"}, json={"status": "cancelled"})

    assert read == added
    assert (added["owner_id"], added["asked_by"], added["due"]) == ("boris", "anna", "2030-05-06T12:00:00Z")
    assert (moved["due_on"], moved["text"]) == ("2030-05-07", "Проверить договор ещё раз")
    assert [each["status"] for each in (done, reopened, cancelled)] == ["done", "open", "cancelled"]


async def test_tasks_are_listed_by_owner_status_date_and_who_asked(settings: FleetSettings) -> None:
    async def ids(**params: Any) -> list[str]:
        page = await gateway.ok("GET", "/api/tasks", params=params)
        return [str(task["text"]) for task in page["items"]]

    async with serving(*KEEPERS, settings=settings) as gateway:
        await add_people(gateway)
        for text, owner, when in (
            ("own", "anna", "2030-05-06"),
            ("given", "boris", "2030-05-05"),
            ("free", "Кто-то", None),
        ):
            await gateway.ok("POST", "/api/tasks", json={"user": "anna", "text": text, "owner": owner, "when": when})

        assert await ids(user="anna") == ["given", "own", "free"]
        assert await ids(user="anna", delegated=True) == ["given", "free"]
        assert await ids(user="anna", owner="anna") == ["own"]
        assert await ids(user="boris") == ["given"]
        assert await ids(user="anna", due_before="2030-05-06T00:00:00Z") == ["given"]
        assert await ids(user="anna", status="done") == []


async def test_what_cannot_be_is_refused_with_a_reason(settings: FleetSettings) -> None:
    async with serving(*KEEPERS, settings=settings) as gateway:
        await add_people(gateway)
        added = await gateway.ok("POST", "/api/tasks", json={"user": "anna", "text": "Секрет"})
        path = f"/api/tasks/{added['task_id']}"

        status, code, detail = await gateway.no(
            "POST", "/api/tasks", json={"user": "anna", "text": "x", "when": "никогда"}
        )
        assert (status, code) == (422, "invalid")
        assert "Friday 15:00" in detail
        for method, options in (("GET", {}), ("PATCH", {"json": {"status": "done"}})):
            assert (await gateway.no(method, path, params={"user": "boris"}, **options))[:2] == (404, "not_found")
        assert (await gateway.no("GET", "/api/tasks"))[:2] == (422, "invalid")
        assert (await gateway.no("PATCH", path, params={"user": "anna"}, json={"state": "done"}))[:2] == (
            422,
            "invalid",
        )
        assert (await gateway.no("GET", "/api/tasks", params={"user": "anna", "cursor": "?"}))[:2] == (422, "invalid")
        assert (await gateway.no("GET", "/api/facts", params={"user": "anna", "of": "x"}))[:2] == (422, "invalid")


async def all_pages(
    page_of: Callable[[str | None], Awaitable[dict[str, Any]]], item_id: str, next_key: str
) -> list[str]:
    """The ids on every page of a list, in order."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await page_of(cursor)
        ids += [item[item_id] for item in page["items"]]
        cursor = page[next_key]
        if cursor is None:
            return ids


def over_http(gateway: Served, path: str) -> Callable[[str | None], Awaitable[dict[str, Any]]]:
    async def page(cursor: str | None) -> dict[str, Any]:
        params = {"user": "anna", "limit": 70} | ({"cursor": cursor} if cursor else {})
        return dict(await gateway.ok("GET", path, params=params))

    return page


def over_shell(shell: Shell, *command: str) -> Callable[[str | None], Awaitable[dict[str, Any]]]:
    async def page(cursor: str | None) -> dict[str, Any]:
        more = ("--cursor", cursor) if cursor else ()
        return dict(await asyncio.to_thread(shell.json, *command, "--limit", "200", *more, spawned=True))

    return page


async def test_of_three_hundred_open_tasks_none_is_lost_over_bus_shell_and_http(settings: FleetSettings) -> None:
    def task(number: int) -> Task:
        due = NOON + timedelta(hours=number // 4) if number % 3 else None
        return Task(
            task_id=f"task_{number}",
            text=f"Task number {number}",
            owner_id="anna" if number % 2 else "boris",
            asked_by="boris" if number % 2 else "anna",
            due=due,
            found_at=NOON,
            changed_at=NOON,
        )

    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})
    async with serving(*KEEPERS, settings=settings) as gateway:
        tasks = [task(number) for number in range(300)]
        for start in range(0, 300, 100):
            writes = tuple(TaskWrite(task=each, at=NOON) for each in tasks[start : start + 100])
            await gateway.bus.request(SaveTasks(writes=writes))

        query = ListTasks(user_id="anna", status=TaskStatus.OPEN, limit=70)
        listed = [each.task_id async for each in items_of(gateway.bus, query)]
        assert sorted(listed) == sorted(each.task_id for each in tasks)
        assert await all_pages(over_http(gateway, "/api/tasks"), "task_id", "next_cursor") == listed
        assert await all_pages(over_shell(shell, "tasks", "ls", "--user", "anna"), "id", "next") == listed


async def test_of_five_hundred_facts_none_is_lost_over_shell_and_http(settings: FleetSettings) -> None:
    def fact(number: int) -> Fact:
        stated = {"fact_id": f"fact_{number}", "kind": "fact", "text": f"Fact {number}.", "said_by": "anna"}
        return Fact.model_validate(stated | {"said_at": NOON + timedelta(hours=number // 4), "message_ids": ("msg_1",)})

    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})
    async with serving(*KEEPERS, settings=settings) as gateway:
        facts = [fact(number) for number in range(500)]
        for start in range(0, 500, 100):
            await gateway.bus.request(SaveFacts(facts=tuple(facts[start : start + 100])))

        listed = await all_pages(over_http(gateway, "/api/facts"), "fact_id", "next_cursor")
        assert sorted(listed) == sorted(each.fact_id for each in facts)
        assert await all_pages(over_shell(shell, "users", "facts", "anna"), "fact_id", "next") == listed
