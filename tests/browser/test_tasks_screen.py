"""The tasks of a user: on their screen and beside their dialogue, done, moved, cancelled and reopened there."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from bus_schema.processing import Task
from bus_schema.task_records import SaveTasks, TaskWrite
from config.settings import FleetSettings
from mindbus import connect
from tests.browser.conftest import App, app_of
from tests.browser.pages import ZONE, Looks, chromium, keep, looking, low_contrasts, overflow
from tests.command_line import Shell

pytestmark = pytest.mark.timeout(300)
TEXTS = {
    -2: "Сдать отчёт за октябрь",
    0: "Call mom",
    1: "Согласовать с подрядчиком макет выставки «Северный ветер», включая свет и подписи",
    4: "Order cake",
    30: "Renew the passport",
}
PEOPLE = {f"vera_{number}": "Вера" for number in range(4)}
LOOKS = [Looks("dark", "ru", "phone"), Looks("light", "en"), Looks("dark", "en"), Looks("light", "ru", "phone")]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[App]:
    """Only what tasks and dialogues need."""
    chromium()
    settings = fleet_settings | {"MINDBUS_GATEWAY_PORT": "0"}
    shell = Shell(tmp_path_factory.mktemp("tasks") / "data", settings=settings)
    workers = "storage,tracker,task_manager,context_manager,dialogue,context,history,gateway"
    try:
        shell.ok("up", "-d", "--workers", workers, spawned=True)
        for user, name in (("olga", "Ольга"), ("boris", "Boris"), ("dina", "Dina"), *PEOPLE.items()):
            shell.ok("users", "add", user, "--name", name)
        yield app_of(shell)
    finally:
        shell.ok("down", spawned=True)


def add(app: App, user: str, text: str, **more: Any) -> str:
    return str(app.ask("POST", "/api/tasks", json={"user": user, "text": text, **more})["task_id"])


async def save_tasks(app: App, user: str, count: int) -> None:
    """So many of one's own, two of three with a date."""
    settings, now = FleetSettings(data_dir=app.shell.data_dir, amqp_url=app.amqp_url), datetime.now(UTC)
    tasks = [
        Task(
            task_id=f"task_{user}_{number}",
            text=f"Task number {number:03}",
            owner_id=user,
            asked_by=user,
            due=datetime(2030, 5, 6, 12, tzinfo=UTC) if number % 3 else None,
            found_at=now,
            changed_at=now,
        )
        for number in range(count)
    ]
    async with connect("user.local", settings=settings) as bus:
        for start in range(0, count, 100):
            writes = tuple(TaskWrite(task=each, at=now) for each in tasks[start : start + 100])
            await bus.request(SaveTasks(writes=writes))


def tasks_of(page: Page, user: str, query: str = "") -> None:
    page.goto(f"/tasks?user={user}{query}")
    expect(page.locator("[data-drawn='tasks']")).to_have_count(1)


def row(page: Page, text: str) -> Locator:
    return page.locator(".mb-task", has_text=text)


def test_tasks_are_listed_for_owner_and_asker(app: App, browser: Browser) -> None:
    add(app, "olga", "Проверить смету", when="2031-01-01")
    add(app, "olga", "Заказать макет", owner="boris")
    with looking(browser, app.url) as page:
        tasks_of(page, "boris")
        expect(page.locator(".mb-task")).to_have_count(1)
        expect(row(page, "Заказать макет")).to_contain_text("asked by Ольга")
        tasks_of(page, "olga")
        expect(page.locator(".mb-task-group")).to_have_text(["Later", "Without a date"])
        page.get_by_role("button", name="For others").click()
        expect(page.locator(".mb-task")).to_have_count(1)
        expect(row(page, "Заказать макет")).to_contain_text("Boris")
        page.get_by_role("button", name="To do").click()
        expect(row(page, "Проверить смету")).to_be_visible()
        expect(page.locator(".mb-task")).to_have_count(1)
        page.reload()
        expect(page.locator(".mb-task")).to_have_count(1)


def test_a_task_is_moved_in_words(app: App, browser: Browser) -> None:
    add(app, "lena", "Заказать торт")
    with looking(browser, app.url) as page:
        tasks_of(page, "lena")
        row(page, "Заказать торт").get_by_role("button", name="Move").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("When").fill("someday")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("no date")
        dialog.get_by_label("When").fill("2030-05-06 15:00")
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(row(page, "Заказать торт")).to_contain_text("2030")


def test_tasks_are_done_cancelled_and_reopened(app: App, browser: Browser) -> None:
    add(app, "pasha", "Проверить смету", when="tomorrow")
    cake = add(app, "pasha", "Заказать торт", owner="boris")
    with looking(browser, app.url) as page:
        tasks_of(page, "pasha")
        row(page, "Проверить смету").get_by_role("button", name="Done: Проверить смету").click()
        expect(row(page, "Проверить смету")).to_contain_text("Marked as done")
        row(page, "Проверить смету").get_by_role("button", name="Undo").click()
        expect(row(page, "Проверить смету").get_by_role("button", name="Cancel")).to_be_visible()
        row(page, "Заказать торт").get_by_role("button", name="Cancel").click()
        expect(page.locator(".mb-task")).to_have_count(1)
        page.get_by_label("Status").select_option("cancelled")
        row(page, "Заказать торт").get_by_role("button", name="Reopen").click()
        expect(page.locator(".mb-task")).to_have_count(0)
        page.get_by_label("Status").select_option("open")
        expect(page.locator(".mb-task")).to_have_count(2)
    assert app.ask("GET", f"/api/tasks/{cake}", params={"user": "boris"})["status"] == "open"


def test_a_task_is_added_by_hand_and_appears_where_others_look(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page, looking(browser, app.url) as chat:
        chat.goto("/chat?with=dina")
        expect(chat.locator("[data-composer]")).to_be_visible()
        tasks_of(page, "pavel")
        expect(page.get_by_role("heading", name="No open tasks")).to_be_visible()
        page.get_by_role("button", name="New task").last.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Add").click()
        expect(dialog.get_by_role("alert")).to_contain_text("Say what")
        dialog.get_by_label("What is to be done").fill("<b>Call</b> the bank")
        dialog.get_by_label("Who does it").fill("dina")
        dialog.get_by_role("button", name="Add").click()
        expect(row(page, "<b>Call</b> the bank")).to_contain_text("Dina")
        expect(chat.locator(".mb-aside")).to_contain_text("<b>Call</b> the bank")
        chat.locator(".mb-aside").get_by_role("link", name="All tasks").click()
        expect(row(chat, "<b>Call</b> the bank")).to_contain_text("asked by pavel")
        page.goto("/tasks")
        expect(page.get_by_label("User")).to_have_value("")


def test_facts_stand_beside_the_dialogue_until_something_else_holds(app: App, browser: Browser) -> None:
    app.say("nadia", "The release is set for May 15. The office has 3 meeting rooms.")
    app.ask("POST", "/api/dialogues/nadia/end")
    with looking(browser, app.url) as page:
        page.goto("/chat?with=nadia")
        aside = page.locator(".mb-aside")
        expect(aside).to_contain_text("The release is set for May 15.")
        app.say("nadia", "The release is moved to May 20.")
        app.ask("POST", "/api/dialogues/nadia/end")
        expect(aside).to_contain_text("May 20")
        expect(aside).to_contain_text("3 meeting rooms")
        expect(aside.locator(".mb-aside-row:not(:has(del))", has_text="May 15")).to_have_count(0)


def test_more_tasks_than_fit_a_page_are_all_there(app: App, browser: Browser) -> None:
    # Playwright has an event loop in this thread.
    with ThreadPoolExecutor(1) as aside:
        aside.submit(asyncio.run, save_tasks(app, "marat", 120)).result(60)
    with looking(browser, app.url) as page:
        tasks_of(page, "marat")
        for shown in (50, 100):
            expect(page.locator(".mb-task")).to_have_count(shown)
            page.get_by_role("button", name="Show more").click()
        expect(page.locator(".mb-task")).to_have_count(120)
        expect(page.get_by_role("button", name="Show more")).to_be_hidden()
        add(app, "marat", "The newest", when="2029-01-01")
        expect(page.locator(".mb-task")).to_have_count(121)
        expect(page.locator(".mb-task").first).to_contain_text("The newest")


@pytest.mark.parametrize(("user", "looks"), list(zip(PEOPLE, LOOKS, strict=True)), ids=str)
def test_tasks_fit_and_can_be_read(app: App, browser: Browser, user: str, looks: Looks) -> None:
    # The viewer's day ends before that of UTC.
    tonight = datetime.now(ZoneInfo(ZONE)).replace(hour=23, minute=59, second=59)
    for days, text in TEXTS.items():
        due = tonight + timedelta(days=days)
        add(app, user, text, due=due.isoformat(), owner="boris" if days == 4 else None)
    add(app, "olga", "Найти второго подрядчика", owner=user)
    with looking(browser, app.url, looks) as page:
        tasks_of(page, user)
        expect(page.locator(".mb-task")).to_have_count(6)
        expect(page.locator(".mb-task-group")).to_have_count(6)
        assert overflow(page) <= 0
        assert not low_contrasts(page)
        keep(page, "tasks", looks)
        page.locator(".mb-task-check").first.click()
        expect(page.locator(".mb-task-done")).to_have_count(1)
        assert not low_contrasts(page)
        keep(page, "tasks-done", looks)
        page.locator(".mb-task-actions button").nth(1).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        keep(page, "tasks-move", looks)
        assert overflow(page) <= 0
        tasks_of(page, "nobody_yet")
        expect(page.locator(".mb-empty")).to_be_visible()
        assert overflow(page) <= 0
        keep(page, "tasks-empty", looks)
