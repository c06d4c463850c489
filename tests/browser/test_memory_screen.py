"""What agents know together, as a person at a browser looks for it."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import App
from tests.browser.pages import Looks, keep, looking, low_contrasts, overflow

pytestmark = pytest.mark.timeout(180)

LOOKS = [Looks("dark", "en"), Looks("dark", "ru", "phone")]
HIT = ".mb-hit[data-row]"
HOSTILE = '<img src=x onerror="window.obeyed=1"> <b>Макет</b> выставки обещают 30 ноября.'


def memory(app: App, *arguments: str) -> Any:
    """As somebody else does; the browser's own loop runs in this thread."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(app.shell.json, "memory", *arguments).result(60)


def add(app: App, text: str, *options: str) -> str:
    return str(memory(app, "add", "--text", text, *options)["kem_id"])


def search(page: Page, query: str) -> None:
    page.goto(f"/memory?{query}")
    expect(page.locator("[data-drawn='memory']")).to_have_count(1)


def test_a_unit_is_found_explained_and_followed_to_where_it_came_from(
    app: App, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "report.md").write_text("# Каток\n\nТруба под улицей соединяет каток с бассейном.", encoding="utf-8")
    with looking(browser, app.url) as page:
        memory(app, "import", str(tmp_path), "--meta", "kind=minutes", "--meta", "project=found")
        add(app, "The warehouse roof leaks.", "--meta", "kind=note", "--meta", "project=found")
        search(page, "filter=metadata.project%3Dfound")
        page.get_by_label("What do you look for?").fill("что соединяет каток")
        page.keyboard.press("Enter")
        expect(page.locator(HIT)).to_have_count(2)
        first = page.locator(HIT).first
        expect(first.locator("mark").first).to_have_text(re.compile("соединяет|каток", re.I))
        page.locator(".mb-facet-row", has_text="minutes").click()
        expect(page.locator(HIT)).to_have_count(1)
        first.click()
        drawer = page.locator(".mb-drawer")
        expect(drawer).to_contain_text("Why it matched")
        expect(drawer.locator(".mb-evidence").first).to_contain_text("соединяет")
        page.reload()
        expect(page.locator(HIT)).to_have_count(1)
        drawer.locator(".mb-origin a").click()
        expect(page.locator(".mb-artifact-body").first).to_contain_text("Труба под улицей")


def test_changes_are_shown_as_they_happen_to_whoever_may_read_them(app: App, browser: Browser) -> None:
    kem_id = add(app, HOSTILE, "--meta", "project=live")
    with looking(browser, app.url) as page, looking(browser, app.url) as annas:
        search(page, "filter=metadata.project%3Dlive")
        search(annas, "view=changes&user=anna")
        row = page.locator(f"[data-kem='{kem_id}']").first
        expect(row).to_contain_text("<img src=x")
        memory(app, "update", kem_id, "--text", HOSTILE.replace("30 ноября", "2 декабря"))
        expect(row.locator("ins")).to_have_text("2 декабря.")
        expect(row.locator("del")).to_have_text("30 ноября.")
        secret = ("--meta", "project=live", "--visibility", "readers", "--reader", "user.anna", "--as", "agent.x")
        hidden = add(app, "Тайна.", *secret)
        expect(annas.locator(f"[data-kem='{hidden}']")).to_be_visible()
        fresh = add(app, "Ещё одна заметка.", "--meta", "project=live")
        memory(app, "rm", kem_id)
        expect(row).to_contain_text("deleted")
        page.get_by_role("button", name="1 changed · refresh").click()
        expect(page.locator(HIT)).to_have_count(1)
        expect(page.locator(f"[data-kem='{fresh}']").first).to_be_visible()
        page.get_by_role("button", name="Changes").click()
        told = page.locator("[data-change]:visible")
        expect(told).to_have_count(3)
        assert [each.get_attribute("data-change") for each in told.all()] == ["deleted", "stored", "updated"]
        assert hidden not in page.content()
        assert page.evaluate("window.obeyed") is None


@pytest.mark.parametrize("looks", LOOKS, ids=str)
def test_the_screen_fits_and_can_be_read(app: App, browser: Browser, looks: Looks) -> None:
    kem_id = add(app, "Пожарный выход закрыт до ремонта.", "--meta", "kind=note", "--visibility", "private")
    queries = (f"q=fire+exit&kem={kem_id}", "filter=metadata.a%3D1+AND+AND")
    with looking(browser, app.url, looks) as page:
        for number, query in enumerate(queries):
            search(page, query)
            if "AND" in query:
                expect(page.locator(".mb-wrong")).to_contain_text("18")
            assert overflow(page) <= 0, query
            for theme in ("dark", "light"):
                page.evaluate(f"mbSetTheme('{theme}')")
                keep(page, f"memory-{number}", replace(looks, theme=theme))
                assert not low_contrasts(page), f"{query}, {theme}"
            page.evaluate("mbSetTheme('dark')")
