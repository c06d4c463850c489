"""`python -m benchmarks.screens` opens each screen of a full fleet in a browser without a cache, until it has rows."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from playwright.async_api import Browser, async_playwright

from benchmarks.screen_data import FULL, QUICK, SHOWN_ARTIFACT, SHOWN_RUN, USER, Extent, fill, put_artifacts
from benchmarks.servers.browser import ARGUMENTS, find_browser
from config.settings import FleetSettings
from mindbus.logs import configure_logs

SIZES = {"desk": (1280, 800), "phone": (390, 844)}
_ROUNDS = 3
_WITHIN_MS = 60_000
# Address, then what is there once it can be used.
_CHART = "window.mbTimelineOfPage?.drawn?.length && document.querySelector('.mb-lane')"
SCREENS = {
    "timeline": ("/timeline", f"document.querySelector('.mb-event-row') || ({_CHART})"),
    "chat": (f"/chat?with={USER}", "document.querySelector('.mb-answer') && document.querySelector('[data-composer]')"),
    "tasks": ("/tasks", "document.querySelector('.mb-task')"),
    "runs": ("/runs", "document.querySelector('.mb-run-row')"),
    "run": (
        f"/runs/{SHOWN_RUN}",
        "document.querySelector('.mb-step .mb-artifact-chip') && document.querySelector('.mb-lineage svg')",
    ),
    "artifact": (f"/artifacts/{SHOWN_ARTIFACT}?trace={SHOWN_RUN}", "document.querySelector('.mb-document')"),
    "fleet": ("/fleet", "document.querySelector('.mb-fleet-workers tr[data-row]')"),
    "memory": ("/memory", "document.querySelector('.mb-hit[data-row]')"),
    "episodes": ("/episodes", "document.querySelector('.mb-ep-row')"),
    "sim": ("/sim", "document.querySelector('.mb-sim-people tr, .mb-sim-people .mb-sim-person')"),
}


def measure_screens(
    gateway_url: str, token: str = "", *, rounds: int = _ROUNDS, size: str = "desk", pictures: Path | None = None
) -> dict[str, float]:
    """Seconds from navigation to first usable content of each screen, medians over rounds that alternate.

    Every page is opened by a browser context of its own, so nothing is cached; the gateway has shown each screen once.
    Run it in a thread of its own where an event loop is running. `pictures` is a folder for screenshots.
    """
    return asyncio.run(_measure(gateway_url, token, rounds, size, pictures))


async def _measure(url: str, token: str, rounds: int, size: str, pictures: Path | None) -> dict[str, float]:
    took: dict[str, list[float]] = {name: [] for name in SCREENS}
    async with async_playwright() as playwright:
        # Without one here it is playwright's own.
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=list(ARGUMENTS))
        for number in range(rounds + 1):
            for name in SCREENS:
                picture = pictures / f"{name}-{size}.png" if pictures and not number else None
                seconds = await _open(browser, url, token, name, SIZES[size], picture)
                print(f"round {number} of {rounds}: {name} {seconds:.2f} s", file=sys.stderr)
                # The first round warms the gateway.
                if number:
                    took[name].append(seconds)
        await browser.close()
    return {name: round(median(seconds), 3) for name, seconds in took.items()}


async def _open(
    browser: Browser, url: str, token: str, name: str, size: tuple[int, int], picture: Path | None
) -> float:
    """Seconds until the screen can be used, by the page's own clock. Raises playwright's TimeoutError."""
    path, condition = SCREENS[name]
    viewport: Any = {"width": size[0], "height": size[1]}
    is_phone = size == SIZES["phone"]
    context = await browser.new_context(
        base_url=url, viewport=viewport, is_mobile=is_phone, has_touch=is_phone, ignore_https_errors=True
    )
    try:
        if token:
            await context.request.post("/login", form={"token": token})
        page = await context.new_page()
        await page.goto(path, wait_until="commit")
        ready = f"() => ({condition}) ? performance.now() : 0"
        found = await page.wait_for_function(ready, polling="raf", timeout=_WITHIN_MS)
        seconds = float(await found.json_value()) / 1000
        if picture is not None:
            await page.locator(f"[data-drawn='{name}']").wait_for(timeout=_WITHIN_MS)
            await page.screenshot(path=picture)
        return seconds
    finally:
        await context.close()


@contextmanager
def full_fleet(folder: Path, extent: Extent) -> Iterator[str]:
    """The address of a gateway; the data of its fleet are as of months."""
    settings = FleetSettings(data_dir=folder / "data", gateway_port=0, log_level="ERROR")
    print(f"filling with {extent.events} events", file=sys.stderr)
    asyncio.run(fill(settings, extent))
    own = {"MINDBUS_DATA_DIR": str(settings.data_dir), "MINDBUS_GATEWAY_PORT": "0", "MINDBUS_GATEWAY_ACCESS": "open"}
    environment = os.environ | own

    def mindbus(*arguments: str) -> str:
        command = [sys.executable, "-m", "mindbus.cli.main", *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    state = json.loads(mindbus("up", "-d", "--json"))
    try:
        asyncio.run(put_artifacts(settings))
        yield str(state["gateway_url"])
    finally:
        mindbus("down")


def as_text(seconds: dict[str, float], extent: Extent) -> str:
    lines = [f"{extent.events} events; seconds from navigation to first usable content, without a cache"]
    return "\n".join(lines + [f"  {name:10}{value:8.2f}" for name, value in seconds.items()])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screens", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few events: shows that it runs, measures nothing")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    parser.add_argument("--size", choices=SIZES, default="desk", help="of the window")
    parser.add_argument("--pictures", type=Path, help="a folder for screenshots")
    options = parser.parse_args(arguments)
    configure_logs("ERROR", "console")
    extent = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name, full_fleet(Path(name), extent) as url:
        seconds = measure_screens(url, size=options.size, pictures=options.pictures)
    print(json.dumps({"screens_s": seconds}) if options.json else as_text(seconds, extent))


if __name__ == "__main__":
    main()
