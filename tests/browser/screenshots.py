"""`make screenshots`: a picture of every screen, empty, full and without the gateway, in all sizes and languages."""

import argparse
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from benchmarks.servers.browser import ARGUMENTS
from config.recorded_runs import shipped_recording
from tests.browser.conftest import App, app_of
from tests.browser.letters import send_a_dead_letter
from tests.browser.pages import SIZES, Looks, chromium, looking
from tests.command_line import Shell

FOLDER = Path("build/screenshots")
_ROOT = Path(__file__).parents[2]
_README = _ROOT / "docs/images"
_PHONE_AND_DESK = tuple(
    Looks(theme, language, size) for size in SIZES for theme in ("dark", "light") for language in ("en", "ru")
)
_SCREENS = ("timeline", "chat", "tasks", "runs", "fleet", "memory", "episodes", "sim", "nowhere")
_CHATS = (
    ("aliya", "user", "«Полярис» прислал смету на 4,2 млн тенге; макет обещают к 28 ноября.", "2026-09-01T09:00:00Z"),
    ("aliya", "assistant", "Записал: смета 4,2 млн тенге, макет к 28 ноября.", "2026-09-01T09:01:00Z"),
    ("aliya", "user", "Решили: если срок сорвут второй раз, ищем второго подрядчика.", "2026-09-09T09:00:00Z"),
    ("aliya", "assistant", "Хорошо, Марат Жумабеков держит контакт «Арка».", "2026-09-09T09:01:00Z"),
    ("ben", "user", "We decided: the hall opens on 9 December. Carol books the crane.", "2026-10-03T09:00:00Z"),
    ("ben", "assistant", "Noted: 9 December, Carol books the crane.", "2026-10-03T09:01:00Z"),
)
# What an open page says to its developers while its gateway is gone, or an address leads nowhere.
_EXPECTED = ("404", "WebSocket", "ERR_CONNECTION_REFUSED", "Failed to load resource")


@contextmanager
def fleet(folder: Path) -> Iterator[App]:
    shell = Shell(folder / "data", settings={"MINDBUS_GATEWAY_PORT": "0"})
    try:
        shell.ok("up", "-d", spawned=True)
        yield app_of(shell)
    finally:
        shell.ok("down", spawned=True)


def fill(app: App, folder: Path) -> str:
    """Sample content of every screen; the id of a run that has ended."""
    shell = app.shell
    shell.ok("users", "add", "aliya", "--name", "Алия Сеитова", "--lang", "ru", spawned=True)
    lines = (dict(zip(("chat_id", "role", "content", "time"), chat, strict=True)) for chat in _CHATS)
    chats = folder / "chats.jsonl"
    chats.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    shell.ok("episodes", "import", str(chats), spawned=True)
    shell.ok("memory", "import", str(_ROOT / "docs/how-to"), "--meta", "project=apollo", spawned=True)
    shell.ok("sim", "start", "--profiles", "team_ru", "--speed", "600", "--limit", "60", "--wait", spawned=True)
    brief = _ROOT / "config/briefs/en.md"
    run = shell.json("process", "run", "article", "--input", str(brief), spawned=True)
    app.say("aliya", "Что мы решили про второго подрядчика?")
    app.ask("POST", "/api/dialogues/aliya/end")
    for _ in range(2):
        send_a_dead_letter(shell.data_dir, app.amqp_url)
    return str(run["run_id"])


def take(browser: Browser, app: App, state: str, paths: dict[str, str], looks: Sequence[Looks]) -> None:
    """A picture of each path in each look, as `STATE/NAME-LOOKS.png`."""
    for each in looks:
        with looking(browser, app.url, each, _EXPECTED) as page:
            for name, path in paths.items():
                page.goto(path)
                page.locator("[data-drawn]").wait_for()
                _settle(page)
                _keep(page, state, name, each)


def take_lost(browser: Browser, app: App, paths: dict[str, str]) -> None:
    """Every screen after the gateway has gone under it; all are opened before."""
    looks = (Looks("dark", "en", "desk"), Looks("light", "ru", "phone"))
    opened: list[tuple[Page, str, Looks]] = []
    for each in looks:
        width, height = SIZES[each.size]
        context = browser.new_context(
            base_url=app.url,
            viewport={"width": width, "height": height},
            is_mobile=each.size == "phone",
            locale="ru-RU" if each.language == "ru" else "en-US",
            reduced_motion="reduce",
        )
        context.add_cookies([{"name": "mb_theme", "value": each.theme, "url": app.url}])
        for name, path in paths.items():
            page = context.new_page()
            page.goto(path)
            page.locator("[data-drawn]").wait_for(timeout=90_000)
            opened.append((page, name, each))
    for process, arguments in app.shell.processes().items():
        if "worker" in arguments and "gateway" in arguments:
            os.kill(process, signal.SIGKILL)
    for page, name, each in opened:
        page.bring_to_front()
        page.locator(".mb-lost-banner").wait_for(timeout=30_000)
        _keep(page, "gateway-gone", name, each)


def picture_for_readme(browser: Browser, folder: Path) -> None:
    """The screen of a run that has ended, for README.md and README.ru.md: light and dark, in at most 256 colours."""
    with fleet(folder) as app:
        for language in ("en", "ru"):
            brief = _ROOT / f"config/briefs/{language}.md"
            run = app.shell.json("process", "run", "article", "--input", str(brief), spawned=True)
            for theme in ("light", "dark"):
                with looking(browser, app.url, Looks(theme, language)) as page:
                    page.goto(f"/runs/{run['run_id']}")
                    page.locator(".mb-artifact-chip").last.click()
                    page.locator(".mb-document").wait_for()
                    _settle(page)
                    _README.mkdir(parents=True, exist_ok=True)
                    picture = Image.open(BytesIO(page.screenshot()))
                    path = _README / f"run-{theme}-{language}.png"
                    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
                    print(path, path.stat().st_size)


def _settle(page: Page) -> None:
    """Until nothing is loading any more, then a moment for charts and figures of the next second."""
    try:
        page.locator(".mb-skel").wait_for(state="detached", timeout=5_000)
        if page.locator(".mb-layers-chart").count():
            page.locator(".mb-layers-chart[data-points]").wait_for(timeout=5_000)
    except TimeoutError:
        print(f"still loading: {page.url}")
    page.wait_for_timeout(1_200)


def _keep(page: Page, state: str, name: str, looks: Looks) -> None:
    path = FOLDER / state / f"{name}-{looks}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    print(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots", description=__doc__)
    parser.add_argument("--only", default="", help="names of screens, separated by commas")
    parser.add_argument("--readme", action="store_true", help="the pictures of README.md alone, which are committed")
    options = parser.parse_args(arguments)
    if options.readme:
        with tempfile.TemporaryDirectory(prefix="mindbus-screens-") as name, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            picture_for_readme(browser, Path(name))
            browser.close()
        return
    wanted = [name for name in _SCREENS if name in (options.only.split(",") if options.only else _SCREENS)]
    empty = {name: f"/{name}" for name in wanted}
    with tempfile.TemporaryDirectory(prefix="mindbus-screens-") as name, sync_playwright() as playwright:
        shutil.rmtree(FOLDER, ignore_errors=True)
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        with fleet(Path(name)) as app:
            few = [looks for looks in _PHONE_AND_DESK if (looks.theme == "dark") == (looks.language == "en")]
            _label, recorded = shipped_recording()
            take(browser, app, "empty", empty | {"recorded": f"/runs/{recorded.run.run_id}"}, few)
            run_id = fill(app, Path(name))
            full = empty | {"chat": "/chat?with=aliya", "memory": "/memory?q=artifact", "run": f"/runs/{run_id}"}
            take(browser, app, "full", full, _PHONE_AND_DESK)
            take_lost(browser, app, full)
        browser.close()


if __name__ == "__main__":
    main()
