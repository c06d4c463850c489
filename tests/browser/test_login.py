"""The way in, where a token is asked for."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages import chromium, looking
from tests.command_line import Shell, require_rabbitmq

TOKEN = "a-token-for-this-test-alone"

pytestmark = pytest.mark.timeout(180)


def test_a_person_comes_in_with_the_token_and_leaves_again(browser: Browser, tmp_path: Path) -> None:
    require_rabbitmq()
    chromium()
    shell = Shell(tmp_path / "data", settings={"MINDBUS_GATEWAY_PORT": "0", "MINDBUS_GATEWAY_TOKEN": TOKEN})
    url = shell.json("up", "-d", "--workers", "storage,gateway", spawned=True)["gateway_url"]
    try:
        # The browser itself says that the first token was refused.
        with looking(browser, url, expected=("401",)) as page:
            page.goto("/fleet")
            for token in ("not-the-token", TOKEN):
                page.locator("#token").fill(token)
                page.keyboard.press("Enter")
                page.wait_for_load_state()
            expect(page.locator("[data-drawn='fleet']")).to_have_count(1)
            page.get_by_role("button", name="Log out").click()
            page.wait_for_url("**/login*")
            page.goto("/chat")
            expect(page.locator("#token")).to_be_visible()
    finally:
        shell.ok("down", spawned=True)
