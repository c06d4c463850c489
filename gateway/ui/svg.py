"""Icons and sparklines as SVG."""

from collections.abc import Sequence

from nicegui import ui
from nicegui.elements.html import Html

_STROKES = {
    "timeline": "M5 6h9M8 12h11M5 18h8",
    "chat": "M20 11.5a8 8 0 0 1-11.6 7.1L4 20l1.4-4.2A8 8 0 1 1 20 11.5z",
    "runs": "M4 4h6v6H4zM14 14h6v6h-6zM7 10v4a3 3 0 0 0 3 3h4",
    "fleet": "M4 4.5h16v6H4zM4 13.5h16v6H4zM7.5 7.5h.01M7.5 16.5h.01M11 7.5h6M11 16.5h6",
    "memory": "M12 4l8.5 4.5L12 13 3.5 8.5zM4 12.5l8 4.2 8-4.2M4 16.3l8 4.2 8-4.2",
    "sim": "M9.5 3h5M10.5 3v6.2L5.2 18a2 2 0 0 0 1.7 3h10.2a2 2 0 0 0 1.7-3l-5.3-8.8V3M8 14.5h8",
    "globe": (
        "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM3.5 12h17"
        "M12 3.5c2.4 2.4 3.6 5.2 3.6 8.5s-1.2 6.1-3.6 8.5c-2.4-2.4-3.6-5.2-3.6-8.5S9.6 5.9 12 3.5z"
    ),
    "moon": "M20 14.2A8.2 8.2 0 0 1 9.8 4a8.2 8.2 0 1 0 10.2 10.2z",
    "sun": (
        "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4"
        "M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4"
    ),
    "system": "M3.5 5h17v11h-17zM9 20h6M12 16v4",
    "keyboard": "M3 6.5h18v11H3zM7 10h.01M10.5 10h.01M14 10h.01M17 10h.01M8 14h8",
    "search": "M11 4.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.8 15.8L20 20",
    "close": "M6 6l12 12M18 6L6 18",
    "plus": "M12 5v14M5 12h14",
    "check": "M5 12.5l4.5 4.5L19 7.5",
    "left": "M14.5 6l-6 6 6 6",
    "right": "M9.5 6l6 6-6 6",
    "down": "M6 9.5l6 6 6-6",
    "up": "M12 19V5.5M6 11l6-6 6 6",
    "more": "M6 12h.01M12 12h.01M18 12h.01",
    "copy": "M9 9h10.5v10.5H9zM15 9V4.5H4.5V15H9",
    "link": "M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1",
    "user": "M12 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM5 20c.600-3.8 3.4-5.5 7-5.5s6.4 1.7 7 5.5",
    "bell": "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15zM10 20.5h4",
    "eye": (
        "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12z"
        "M12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z"
    ),
    "mood": (
        "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17z"
        "M8.5 14.5c.900 1.2 2 1.8 3.5 1.8s2.6-.600 3.5-1.8M9 9.5h.01M15 9.5h.01"
    ),
    "task": "M4.5 4.5h15v15h-15zM8.5 12l2.5 2.5 4.5-5",
    "clock": "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM12 7.5V12l3 2",
    "send": "M12 19.5V5M5.5 11.5L12 5l6.5 6.5",
    "stop": "M7 7h10v10H7z",
    "play": "M7.5 5l11 7-11 7z",
    "columns": "M4 5h16v14H4zM12 5v14",
    "file": "M6 3.5h8l4.5 4.5v12.5H6zM14 3.5V8h4.5",
    "download": "M12 4v11M7 10.5l5 5 5-5M5 20h14",
    "replay": "M4.5 12a7.5 7.5 0 1 0 2.4-5.5M4.5 4v4h4",
    "trash": "M5 7h14M10 7V4.5h4V7M7 7l.800 12.5h8.4L17 7M10.5 10.5v5.5M13.5 10.5v5.5",
    "alert": "M12 4.5l8.5 15h-17zM12 10v4.5M12 17.2h.01",
    "table": "M4 5h16v14H4zM4 10h16M4 14.5h16M10 10v9",
    "filter": "M4.5 6h15M7.5 12h9M10.5 18h3",
    "dice": "M5 5h14v14H5zM9 9h.01M15 15h.01M15 9h.01M9 15h.01M12 12h.01",
    "open": "M14 4.5h5.5V10M19.5 4.5L11 13M17 13.5v6H4.5V7h6",
    "hidden": (
        "M4 4l16 16M9.8 5.8c.700-.200 1.4-.300 2.2-.300 6 0 9.5 6.5 9.5 6.5a17 17 0 0 1-2.7 3.4"
        "M6.2 7.6A16 16 0 0 0 2.5 12S6 18.5 12 18.5c1.5 0 2.9-.400 4-1"
    ),
    "anchor": "M12 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM12 8v12M8.5 11h7M4.5 13.5c0 4 3.2 6.5 7.5 6.5s7.5-2.5 7.5-6.5",
    "logout": "M14 4.5H5v15h9M10 12h10M16.5 8.5L20 12l-3.5 3.5",
}


def drawing(name: str) -> str:
    """An icon as SVG in the colour of the surrounding text."""
    return (
        '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" '
        f'stroke-linejoin="round" aria-hidden="true"><path d="{_STROKES[name]}"/></svg>'
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
