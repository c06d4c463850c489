"""A person at a browser: opens a screen, reads it, presses keys."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.servers.browser import find_browser
from mindbus.testing.wait import PATIENCE
from tests.brokers import do_without

SIZES = {"desk": (1280, 800), "phone": (390, 844)}
SCREENSHOTS = Path("build/screenshots")
ZONE = "Asia/Almaty"
_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
# What a screen may not say to its developers while somebody uses it.
_LOUD = ("error", "warning")


@dataclass(frozen=True)
class Looks:
    """How somebody has their screen."""

    theme: str = "dark"
    language: str = "en"
    size: str = "desk"

    def __str__(self) -> str:
        return f"{self.size}-{self.theme}-{self.language}"


def chromium() -> str:
    """The browser of this machine; without one the test is left out, and fails in CI."""
    advice = "Debian: sudo apt-get install chromium-headless-shell. Ubuntu: sudo apt-get install chromium"
    return find_browser() or do_without(LookupError("no Chromium"), "Chromium", advice)


@contextmanager
def looking(browser: Browser, url: str, looks: Looks | None = None, expected: tuple[str, ...] = ()) -> Iterator[Page]:
    """A page of a browser that nobody has used before; what it complains about fails the test."""
    looks = looks or Looks()
    width, height = SIZES[looks.size]
    is_phone = looks.size == "phone"
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": height},
        device_scale_factor=2 if is_phone else 1,
        is_mobile=is_phone,
        has_touch=is_phone,
        reduced_motion="reduce",
        locale="ru-RU" if looks.language == "ru" else "en-US",
        timezone_id=ZONE,
    )
    context.set_default_timeout(15_000 * PATIENCE)
    context.add_cookies([{"name": "mb_theme", "value": looks.theme, "url": url}])
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in _LOUD else None)
    try:
        yield page
    finally:
        context.close()
    complaints = [said for said in complaints if not any(known in said for known in expected)]
    if complaints:
        pytest.fail("the page complains: " + "; ".join(complaints), pytrace=False)


def overflow(page: Page) -> int:
    """How many pixels a screen is too wide."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def keep(page: Page, name: str, looks: Looks) -> Path:
    """A picture of it, for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{re.sub(r'[^a-z0-9]+', '-', name)}-{looks}.png"
    page.screenshot(path=path)
    return path


def violations(page: Page) -> list[str]:
    """What axe-core calls serious or critical, with the elements."""
    page.evaluate(_AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{one['id']}: {node['html'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def low_contrasts(page: Page) -> list[dict[str, Any]]:
    """Texts that are harder to read than 4.5:1, as the browser has painted them."""
    found: list[dict[str, Any]] = page.evaluate(_CONTRAST)
    return found


_CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, under) => top.slice(0, 3).map((part, at) => part * top[3] + under[at] * (1 - top[3]));
  const light = (colour) => { const [r, g, b] = colour.map((part) => {
    part /= 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [0, 0, 0]);
  };
  const found = [];
  for (const element of document.querySelectorAll('.mb-app *')) {
    const own = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    const inSvg = element.namespaceURI !== 'http://www.w3.org/1999/xhtml';
    if (!own.length || !box.width || inSvg || style.visibility === 'hidden' || element.closest('[disabled]')) continue;
    if (box.bottom < 0 || box.top > innerHeight || element.className.includes('mb-sr')) continue;
    const under = ground(element), text = over(rgba(style.color), under);
    const [high, low] = [light(text), light(under)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) found.push({text: element.textContent.trim().slice(0, 40), classes: element.className, ratio});
  }
  return found;
}"""
