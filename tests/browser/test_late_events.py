"""Events that are recorded after a page has read the timeline, though they were published before it listened."""

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

from bus_schema.processing import Mood, MoodAssessed
from config.settings import FleetSettings
from mindbus import connect
from tests.browser.conftest import App, app_of
from tests.browser.pages import chromium, looking
from tests.command_line import Shell

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def fleet(tmp_path: Path, fleet_settings: dict[str, str]) -> Iterator[tuple[App, int]]:
    """A fleet whose tracker is a process of its own, with the id of that process."""
    chromium()
    shell = Shell(tmp_path / "data", settings=fleet_settings | {"MINDBUS_GATEWAY_PORT": "0"})
    try:
        state = shell.json("up", "-d", "--isolate", "--workers", "storage,tracker,gateway", spawned=True)
        tracker = next(process["pid"] for process in state["workers"] if process["workers"] == ["tracker"])
        yield app_of(shell), tracker
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
        await bus.publish(MoodAssessed(agent="mood_watcher", user_id=user, fragment_id="frag_1", items=(mood,)))


def test_an_event_recorded_after_the_page_was_read_appears(fleet: tuple[App, int], browser: Browser) -> None:
    app, tracker = fleet
    with ThreadPoolExecutor(1) as aside, looking(browser, app.url) as page:
        with stopped(tracker):
            aside.submit(asyncio.run, publish_a_mood(app, "rita")).result(60)
            page.goto("/timeline?user=rita&view=table")
            expect(page.locator("[data-drawn='timeline']")).to_have_count(1)
            expect(page.locator(".mb-event-row")).to_have_count(0)
        expect(page.locator(".mb-event-row", has_text="mood_assessed")).to_be_visible()
