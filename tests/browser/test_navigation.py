"""What a newcomer meets: the palette, names, addresses that lead nowhere, a gateway that is gone, large letters."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import App
from tests.browser.letters import send_a_dead_letter
from tests.browser.pages import Looks, looking, overflow

pytestmark = pytest.mark.timeout(300)

SCREENS = ("timeline", "chat", "tasks", "runs", "fleet", "memory", "episodes", "sim")
_KNOWN_WITHIN_S = 30.0


def opened(page: Page, path: str = "/tasks") -> Page:
    page.goto(path)
    expect(page.locator("[data-drawn]")).to_have_count(1)
    return page


def palette(page: Page, words: str) -> None:
    """Open it and write, as fast as somebody who knows it."""
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    expect(page.locator(".mb-palette input")).to_have_value(words)


def entry_of(page: Page, group: str, words: str) -> Locator:
    return page.get_by_role("group", name=group).get_by_role("option").filter(has_text=words).first


def choose(page: Page, group: str, words: str) -> None:
    entry_of(page, group, words).click()
    expect(page.locator("[data-drawn]")).to_have_count(1)


def look_for(page: Page, group: str, words: str, shown: str) -> None:
    """Open the palette until it has the entry: who was added just now is known on screens some seconds later."""
    deadline = time.monotonic() + _KNOWN_WITHIN_S
    while True:
        palette(opened(page), words)
        try:
            expect(entry_of(page, group, shown)).to_be_visible(timeout=3_000)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        else:
            return


def aside(app: App, *arguments: str) -> object:
    """A command of the shell; the browser's own loop runs in this thread."""
    with ThreadPoolExecutor(1) as worker:
        return worker.submit(app.shell.ok, *arguments).result(60)


# The first of all: nobody has said anything yet.
def test_an_empty_chat_says_what_to_do_on_a_phone_too(app: App, browser: Browser) -> None:
    for size, title in (("phone", "No dialogues yet"), ("desk", "No dialogue selected")):
        with looking(browser, app.url, Looks(size=size)) as page:
            opened(page, "/chat")
            expect(page.get_by_text(title)).to_be_visible()
            page.get_by_role("button", name="New dialogue").last.click()
            expect(page.get_by_role("dialog")).to_be_visible()


def test_every_entry_of_the_palette_opens_a_screen(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page:
        opened(page).keyboard.press("Control+k")
        expect(page.locator(".mb-palette a[href='/episodes?anchors=1']")).to_have_count(1)
        targets = [str(entry.get_attribute("href")) for entry in page.locator(".mb-palette a").all()]
        assert {f"/{screen}" for screen in SCREENS} < set(targets)
        for target in targets:
            opened(page, target)


def test_the_palette_finds_things_of_every_kind(app: App, browser: Browser, run_id: str) -> None:
    app.say("kira", "The quokka exhibition opens in spring.")
    aside(app, "users", "add", "boris_2", "--name", "Boris Quokkin")
    aside(app, "memory", "add", "--text", "A quokka is a small wallaby.", "--id", "kem_quokka")
    artifact_id, _ = send_a_dead_letter(app.shell.data_dir, app.amqp_url)
    kinds = (
        ("People", "Boris Q", "Boris Quokkin", r"/chat\?with=boris_2"),
        ("Messages", "quokka exh", "The quokka exhibition", r"/chat\?with=kira&message="),
        ("Shared memory", "quokka wallaby", "small wallaby", r"/memory\?q=quokka.wallaby&kem=kem_quokka"),
        ("Episodes", "quokka exh", "quokka exhibition", r"/episodes\?episode=ep_"),
        ("Runs", run_id, run_id, f"/runs/{run_id}"),
        ("Artifacts", "brief", "brief", r"/artifacts/art_"),
        ("Dead letters", "register_art", "register_artifact", r"/fleet"),
        ("Workers", "mood", "mood_watcher", r"/fleet\?worker=mood_watcher"),
    )
    with looking(browser, app.url) as page:
        for group, words, shown, target in kinds:
            look_for(page, group, words, shown)
            choose(page, group, shown)
            expect(page).to_have_url(re.compile(target))
        # The letter itself is open, where it came from a link to it.
        opened(page)
        palette(page, "register_art")
        choose(page, "Dead letters", "register_artifact")
        expect(page.get_by_role("dialog")).to_contain_text(artifact_id)


def test_words_that_are_no_trace_are_not_looked_for_as_one(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page:
        palette(opened(page), "run_budget")
        expect(entry_of(page, "Search", "run_budget")).to_be_visible()
        expect(page.locator(".mb-palette a[href='/timeline?trace=run_budget']")).to_have_count(1)
        palette(opened(page), "budget of Aurora")
        expect(entry_of(page, "Search", "budget of Aurora")).to_be_visible()
        expect(page.locator(".mb-palette a[href^='/timeline?trace=']")).to_have_count(0)
        # As from a link that somebody has written.
        opened(page, "/timeline?trace=budget%20of%20Aurora")
        expect(page.get_by_role("button", name="Filter by user or trace")).to_be_visible()


def test_an_entry_that_is_pressed_while_results_come_is_taken(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page:
        opened(page, "/timeline").keyboard.press("Control+k")
        entry = page.get_by_role("option", name="Tasks").first
        entry.hover()
        page.mouse.down()
        pressed = entry.element_handle()
        rewrite = "(line) => { line.value = 'tas'; line.dispatchEvent(new Event('input')); }"
        page.locator(".mb-palette input").evaluate(rewrite)
        page.wait_for_function("(row) => !row.isConnected", arg=pressed)
        page.mouse.up()
        page.wait_for_url(re.compile("/tasks"))


def test_the_palette_keeps_capital_letters(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page:
        palette(opened(page), "Zoe.Q")
        page.get_by_role("option", name="Dialogue with").filter(has_text="Zoe.Q").click()
        page.wait_for_url(re.compile("/chat"))
        assert parse_qs(urlsplit(page.url).query) == {"with": ["Zoe.Q"]}


def test_somebody_with_a_name_in_any_script_can_be_talked_as(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page:
        opened(page, "/chat?new=1")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name or user ID").fill("Алия Сеитова")
        dialog.get_by_role("button", name="Open").click()
        expect(page.locator(".mb-pane-name")).to_have_text("Алия Сеитова")
        page.locator("[data-composer]").fill("Меня зовут Алия.")
        page.keyboard.press("Enter")
        expect(page.locator(".mb-answer:not([data-growing])")).to_have_count(1)
        expect(page.locator(".mb-person-name", has_text="Алия Сеитова")).to_have_count(1)
        # By her name, wherever a user is asked for.
        opened(page, "/chat?with=алия сеитова")
        expect(page.locator(".mb-said")).to_contain_text("Меня зовут Алия")
        opened(page, "/timeline?user=Алия Сеитова")
        expect(page.locator(".mb-lane", has_text="dialogue")).to_be_visible()


def test_an_address_that_leads_nowhere_shows_the_apps_own_page(app: App, browser: Browser) -> None:
    with looking(browser, app.url, expected=("404",)) as page:
        answer = page.goto("/nowhere/at/all")
        assert answer is not None
        assert answer.status == 404
        expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()
        expect(page.locator("[data-drawn]")).to_have_count(1)
        page.keyboard.press("Control+k")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Go to the timeline").click()
        page.wait_for_url("**/timeline*")


@contextmanager
def second_gateway(app: App, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Another gateway of the same fleet at an address of its own."""
    shell = replace(app.shell, settings={**app.shell.settings, "MINDBUS_GATEWAY_PORT": str(port)})
    with shell.start("worker", "gateway", to=subprocess.DEVNULL) as gateway:
        with httpx.Client(transport=httpx.HTTPTransport(retries=8), trust_env=False, timeout=60) as client:
            client.get(f"http://127.0.0.1:{port}/healthz", timeout=60)
        try:
            yield gateway
        finally:
            gateway.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_without_the_gateway_nothing_claims_to_be_well_until_it_is_back(app: App, browser: Browser) -> None:
    port = _free_port()
    lost = ("ERR_CONNECTION_REFUSED", "WebSocket", "Failed to load resource")
    url = f"http://127.0.0.1:{port}"
    with (
        looking(browser, url, expected=lost) as page,
        looking(browser, url, Looks(size="phone"), expected=lost) as phone,
    ):
        with second_gateway(app, port) as gateway:
            opened(phone, "/memory")
            opened(page, "/fleet")
            dot = page.locator(".mb-fleet-workers tr[data-row] .mb-dot").first
            expect(dot).to_be_visible()
            os.kill(gateway.pid, signal.SIGKILL)
            banner = page.get_by_role("alert").filter(has_text="The gateway has not responded since")
            expect(banner).to_have_count(1)
            expect(banner.get_by_role("button")).to_have_text(re.compile("Retry, [1-5] s"))
            expect(page.locator(".mb-health")).to_contain_text("Gateway not responding")
            for mark in (dot, page.locator(".mb-health .mb-dot")):
                assert mark.evaluate("(dot) => getComputedStyle(dot).backgroundColor") == "rgba(0, 0, 0, 0)"
            expect(phone.locator(".mb-lost-banner")).to_be_visible()
            expect(phone.get_by_role("button", name="Changes")).to_be_in_viewport(ratio=1)
        with second_gateway(app, port):
            expect(banner).to_have_count(0, timeout=30_000)
            expect(page.locator("[data-drawn='fleet']")).to_have_count(1)


def test_every_screen_can_be_used_at_twice_the_size_and_by_keyboard_alone(
    app: App, browser: Browser, run_id: str
) -> None:
    with looking(browser, app.url) as page:
        # A window of 1280 x 800 at 200 %.
        page.set_viewport_size({"width": 640, "height": 400})
        for path in (*(f"/{screen}" for screen in SCREENS), f"/runs/{run_id}"):
            opened(page, path)
            assert overflow(page) <= 0, path
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.textContent") == "Skip to content", path
            stops = [_focused(page) for _ in range(12)]
            # At the end of a page the focus leaves it once.
            assert stops.count("") <= 1, f"{path}: {stops}"
            assert all(one != other for one, other in pairwise(stops)), f"{path}: the focus is caught in {stops}"


def _focused(page: Page) -> str:
    page.keyboard.press("Tab")
    return str(page.evaluate("document.activeElement === document.body ? '' : document.activeElement.id"))
