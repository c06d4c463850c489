"""Colours can be read on every ground that they appear on."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

STYLES = Path("gateway/ui/static/mindbus.css").read_text(encoding="utf-8")
TEXTS = ("t1", "t2", "t3", "acc", "ok", "warn", "err", "raw", "processed", "notification", "artifact", "process")
GROUNDS = ("bg0", "bg1", "bg2")


def theme(selector: str) -> dict[str, str]:
    (rules,) = re.findall(rf"^{re.escape(selector)} {{(.*?)^}}", STYLES, re.DOTALL | re.MULTILINE)
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", rules))


THEMES = {"dark": theme(":root"), "light": theme('html[data-theme="light"]')}


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def pairs() -> Iterator[tuple[str, str, str]]:
    for name in THEMES:
        for ground in GROUNDS:
            yield from ((name, text, ground) for text in TEXTS)


@pytest.mark.parametrize(("name", "text", "ground"), list(pairs()))
def test_a_text_is_readable(name: str, text: str, ground: str) -> None:
    colours = THEMES["dark"] | THEMES[name]
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("name", THEMES)
def test_white_is_readable_on_a_primary_button(name: str) -> None:
    assert contrast("#ffffff", THEMES[name]["accbg"]) >= 4.5
