"""A gateway that asks for a token, a model that speaks slowly."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.held_model import HeldModel, held_model
from tests.browser.pages import chromium, looking
from tests.command_line import Shell

TOKEN = "a-token-for-these-tests-alone"
WORKERS = "storage,history,tracker,dialogue,gateway"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def model() -> Iterator[HeldModel]:
    with held_model() as found:
        yield found


@pytest.fixture(scope="module")
def url(model: HeldModel, tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[str]:
    """The workers that a talk needs, no others."""
    chromium()
    settings = fleet_settings | {
        "MINDBUS_GATEWAY_PORT": "0",
        "MINDBUS_GATEWAY_TOKEN": TOKEN,
        "MINDBUS_LLM_BASE_URL": model.base_url,
        "MINDBUS_LLM_MODEL": "held",
    }
    shell = Shell(tmp_path_factory.mktemp("guarded") / "data", settings=settings)
    try:
        yield shell.json("up", "-d", "--workers", WORKERS, spawned=True)["gateway_url"]
    finally:
        shell.ok("down", spawned=True)


@contextmanager
def inside(browser: Browser, url: str, path: str) -> Iterator[Page]:
    """Let in, at a screen."""
    with looking(browser, url) as page:
        page.goto(path)
        page.locator("#token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("[data-drawn]")).to_have_count(1)
        yield page


def say(page: Page, message: str) -> None:
    page.locator("[data-composer]").fill(message)
    page.keyboard.press("Enter")


def test_a_person_comes_in_with_the_token_and_leaves_again(browser: Browser, url: str) -> None:
    # The browser itself says that the first token was refused.
    with looking(browser, url, expected=("401",)) as page:
        page.goto("/fleet")
        page.locator("#token").fill("not-the-token")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_be_visible()
        page.locator("#token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("[data-drawn='fleet']")).to_have_count(1)
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login*")
        page.goto("/chat")
        expect(page.locator("#token")).to_be_visible()


def test_an_answer_is_seen_while_it_comes(browser: Browser, url: str, model: HeldModel) -> None:
    with inside(browser, url, "/chat?with=olga") as page:
        say(page, "Сколько мы теряем по графику?")
        growing = page.locator("[data-growing]")
        model.let_say(1)
        expect(growing).to_contain_text("Отставание")
        model.let_say(1)
        # A paragraph that has ended is laid out already, the next one still grows.
        expect(growing.locator("strong")).to_have_text("4 дня")
        expect(growing.locator(".mb-growing-text")).to_have_text("Монтаж сдвигается")
        expect(page.locator(".mb-person-row", has_text="olga")).to_contain_text("writing")
        expect(page.locator(".mb-thumb")).to_have_count(0)
        model.let_say(1)
        expect(growing).to_have_count(0)
        expect(page.locator(".mb-thumb")).to_have_count(2)
        expect(page.locator(".mb-answer")).to_contain_text("на 11 декабря.")


def test_an_answer_does_not_end_the_stream_of_the_next_one(browser: Browser, url: str, model: HeldModel) -> None:
    with inside(browser, url, "/chat?with=daria") as page:
        say(page, "Сколько мы теряем по графику?")
        growing = page.locator("[data-growing]")
        model.let_say(1)
        expect(growing).to_contain_text("Отставание")
        say(page, "А по деньгам?")
        model.let_say(2)
        expect(page.locator(".mb-answer:not([data-growing])")).to_contain_text("на 11 декабря.")
        expect(growing).to_have_count(1)
        model.let_say(1)
        expect(growing).to_contain_text("Отставание")
        model.let_say(2)
        expect(page.locator(".mb-answer:not([data-growing])")).to_have_count(2)


def test_a_broken_answer_begins_again_on_the_screen(browser: Browser, url: str, model: HeldModel) -> None:
    with inside(browser, url, "/chat?with=maria") as page:
        say(page, "Сколько мы теряем?")
        growing = page.locator("[data-growing]")
        model.let_say(2)
        expect(growing).to_contain_text("Монтаж сдвигается")
        model.break_off()
        expect(growing).not_to_contain_text("Отставание")
        model.let_say(1)
        expect(growing).to_contain_text("Отставание")
        expect(growing).not_to_contain_text("Монтаж сдвигается")
        model.let_say(2)
        answer = page.locator(".mb-answer")
        expect(answer).to_contain_text("на 11 декабря.")
        assert (answer.text_content() or "").count("Отставание") == 1


# In a Russian layout.
CONTROL_K = {"key": "л", "code": "KeyK", "ctrlKey": True}
SLASH, QUESTION_MARK = {"key": ".", "code": "Slash"}, {"key": ",", "code": "Slash", "shiftKey": True}
PRESS = 'keys => document.body.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, ...keys }))'


def test_escape_cancels_the_answer_which_is_kept_as_far_as_it_came(
    browser: Browser, url: str, model: HeldModel
) -> None:
    with inside(browser, url, "/chat?with=pavel") as page:
        say(page, "А что с монтажом?")
        model.let_say(1)
        growing = page.locator("[data-growing]")
        expect(growing).to_contain_text("Отставание")
        # What these open is closed without the answer being stopped.
        for keys in (CONTROL_K, QUESTION_MARK):
            page.evaluate(PRESS, keys)
            expect(page.locator(".q-dialog")).to_have_count(1)
            page.keyboard.press("Escape")
            expect(page.locator(".q-dialog")).to_have_count(0)
        expect(growing).to_have_count(1)
        page.keyboard.press("Escape")
        expect(growing).to_have_count(0)
        expect(page.locator(".mb-answer")).to_contain_text("Отставание")
        expect(page.locator(".mb-answer")).to_contain_text("[ответ оборван]")
        expect(page.locator(".mb-answer .mb-again")).to_have_count(1)
        expect(page.locator(".mb-thumb")).to_have_count(0)
        page.evaluate(PRESS, SLASH)
        expect(page.locator("[data-search]:focus")).to_have_count(1)
