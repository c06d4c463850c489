"""Icons and sparklines as SVG."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import cast

import yaml
from nicegui import ui
from nicegui.elements.html import Html


@cache
def _strokes() -> dict[str, str]:
    return cast("dict[str, str]", yaml.safe_load(files("gateway.ui").joinpath("catalogues", "icons.yaml").read_text()))


def drawing(name: str) -> str:
    """An icon as SVG in the colour of the surrounding text."""
    return (
        '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" '
        f'stroke-linejoin="round" aria-hidden="true"><path d="{_strokes()[name]}"/></svg>'
    )


LOGO = (
    '<svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" aria-hidden="true"><path d="M4 8h9M11 16h9M4 16h2.5a3.5 3.5 0 0 0 3.5-3.5v-1'
    'A3.5 3.5 0 0 1 13.5 8H16M18 8h2"/></svg>'
)


def icon(name: str, classes: str = "") -> Html:
    """An icon element, hidden from screen readers."""
    return ui.html(drawing(name), sanitize=False, tag="span").classes(f"mb-icon {classes}")


def sparkline(values: Sequence[float], width: int = 56, height: int = 16) -> str:
    """A sparkline from 0 to the maximum."""
    return area(values, width, height, low=0, high=max([*values, 1e-9]))


def area(values: Sequence[float], width: int, height: int, *, low: float, high: float) -> str:
    """A line with a tinted area below."""
    points = list(values) if len(values) > 1 else [*values, *values] or [low, low]
    step = width / (len(points) - 1)
    reach = max(high - low, 1e-9)
    line = " ".join(
        f"{'L' if place else 'M'}{place * step:.1f} {height - 1 - (value - low) / reach * (height - 2):.1f}"
        for place, value in enumerate(points)
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{line} L{width} {height} L0 {height}Z" fill="currentColor" opacity=".14"/>'
        f'<path d="{line}" fill="none" stroke="currentColor" stroke-width="1.25" vector-effect="non-scaling-stroke"/>'
        "</svg>"
    )
