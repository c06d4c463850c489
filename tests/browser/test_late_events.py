"""Events that are recorded, or read, late: after the page that shows them has read the timeline, or chosen another."""

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bus_schema.dialogue import MessageKind, MessageReceived, conversation_trace
from bus_schema.processing import Mood, MoodAssessed
from config.settings import FleetSettings
from mindbus import connect
from tests.browser.conftest import App, app_of
from tests.browser.pages import chromium, looking
from tests.command_line import Shell

pytestmark = pytest.mark.timeout(300)


# Notes the name of each event that opens in the drawer, and that the gateway has taken a choice: the address then
# keeps what is open.
_NOTE = """() => {
  window.opened = [];
  window.choices = 0;
  const remember = window.mbWhere;
  window.mbWhere = (query) => { window.choices += 1; remember(query); };
  new MutationObserver((changes) => changes.forEach(({ target }) => window.opened.push(target.ariaLabel)))
    .observe(document.querySelector(".mb-drawer"), { attributeFilter: ["aria-label"] });
}"""


@pytest.fixture
def fleet(tmp_path: Path, fleet_settings: dict[str, str]) -> Iterator[tuple[App, dict[str, int]]]:
    """A fleet with a process for each worker, and the ids of the processes."""
    chromium()
    shell = Shell(tmp_path / "data", settings=fleet_settings | {"MINDBUS_GATEWAY_PORT": "0"})
    try:
        state = shell.json("up", "-d", "--isolate", "--workers", "storage,tracker,gateway", spawned=True)
        yield app_of(shell), {process["workers"][0]: process["pid"] for process in state["workers"]}
    finally:
        shell.ok("down", spawned=True)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def publish_a_mood(app: App, user: str) -> None:
    settings = FleetSettings(data_dir=app.shell.data_dir, amqp_url=app.amqp_url)
    at = datetime.now(UTC)
    mood = Mood(tone=-0.7, usual=0, is_sharp_turn=False, assessed_at=at, message_ids=("msg_1",))
    async with connect("user.local", service="mood_watcher", settings=settings) as bus:
        assessed = MoodAssessed(agent="mood_watcher", user_id=user, fragment_id="frag_1", items=(mood,))
        await bus.publish(assessed, trace=conversation_trace(user))


async def publish_a_message(app: App, user: str) -> None:
    settings = FleetSettings(data_dir=app.shell.data_dir, amqp_url=app.amqp_url)
    async with connect("user.local", service="dialogue", settings=settings) as bus:
        received = MessageReceived(user_id=user, message_id="msg_1", kind=MessageKind.NATIVE, preview="Hello")
        await bus.publish(received, trace=conversation_trace(user))


def test_an_event_recorded_after_the_page_was_read_appears(fleet: tuple[App, dict[str, int]], browser: Browser) -> None:
    app, pids = fleet
    with ThreadPoolExecutor(1) as aside, looking(browser, app.url) as page:
        with stopped(pids["tracker"]):
            aside.submit(asyncio.run, publish_a_mood(app, "rita")).result(60)
            page.goto("/timeline?user=rita&view=table")
            expect(page.locator("[data-drawn='timeline']")).to_have_count(1)
            expect(page.locator(".mb-event-row")).to_have_count(0)
        expect(page.locator(".mb-event-row", has_text="mood_assessed")).to_be_visible()


def test_an_event_that_was_read_late_does_not_open_once_another_was_chosen(
    fleet: tuple[App, dict[str, int]], browser: Browser
) -> None:
    app, pids = fleet
    with ThreadPoolExecutor(1) as aside, looking(browser, app.url) as page:
        for publish in (publish_a_mood, publish_a_message):
            aside.submit(asyncio.run, publish(app, "rita")).result(60)
        page.goto("/timeline?user=rita&view=table")
        mood, message = (page.locator(".mb-event-row", has_text=name) for name in ("mood_assessed", "message_received"))
        expect(mood).to_be_visible()
        expect(message).to_be_visible()
        page.evaluate(_NOTE)
        with stopped(pids["storage"]):
            mood.click()
            page.keyboard.press("Escape")
            page.wait_for_function("window.choices === 1")
        # Whatever was asked before this has been answered by then.
        app.ask("GET", "/api/timeline?user=rita")
        message.click()
        drawer = page.locator(".mb-drawer")
        expect(drawer).to_have_attribute("aria-label", "dialogue.message_received")
        assert page.evaluate("window.opened") == ["dialogue.message_received"]
        page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()
