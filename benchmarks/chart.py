"""A chart of benchmarks as SVG: a panel for each measure, a bar for MindBus and for each peer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _PANEL_WIDTH, _GAP, _TITLE, _BAR, _FOOT = 960, 465, 30, 22, 22, 18
_LABEL_WIDTH, _VALUE_WIDTH = 150, 80
_OURS = "mindbus"
_STYLE = (
    "text{font:13px Inter,system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.note{fill:#6e7781}"
    "rect{fill:#afb8c1}rect.ours{fill:#5263e6}"
    "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#8b949e}rect{fill:#57606a}rect.ours{fill:#7f8cf0}}"
)


@dataclass(frozen=True)
class Panel:
    """A measure: its unit, its numbers by name in the order of the bars; names that begin with `mindbus` are ours."""

    title: str
    unit: str
    numbers: dict[str, float]
    is_less_better: bool = False

    @property
    def height(self) -> int:
        return _TITLE + _BAR * len(self.numbers) + _FOOT


def chart(panels: Sequence[Panel], note: str) -> str:
    """The panels in two columns, the note below them."""
    columns: list[list[Panel]] = [[], []]
    heights = [0, 0]
    for panel in panels:
        column = heights.index(min(heights))
        columns[column].append(panel)
        heights[column] += panel.height
    height = max(heights) + _FOOT + _TITLE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<style>{_STYLE}</style>",
    ]
    for number, column_panels in enumerate(columns):
        lines += _column(column_panels, number * (_PANEL_WIDTH + _GAP))
    return "\n".join([*lines, _text(0, height - _FOOT / 2, note, "note"), "</svg>\n"])


def _column(panels: Sequence[Panel], left: int) -> Iterator[str]:
    top = _TITLE
    for panel in panels:
        better = "less is better" if panel.is_less_better else "more is better"
        yield _text(left, top, f"{panel.title}, {panel.unit} ({better})", "title")
        most = max(panel.numbers.values())
        for place, (name, number) in enumerate(panel.numbers.items()):
            y = top + 8 + place * _BAR
            width = (_PANEL_WIDTH - _LABEL_WIDTH - _VALUE_WIDTH) * number / most
            kind = ' class="ours"' if name.startswith(_OURS) else ""
            yield _text(left, y + 13, name)
            yield f'<rect{kind} x="{left + _LABEL_WIDTH}" y="{y}" width="{width:.1f}" height="{_BAR - 5}" rx="2"/>'
            yield _text(left + _LABEL_WIDTH + width + 6, y + 13, shown(number))
        top += panel.height


def shown(number: float) -> str:
    """Three digits, thousands set apart."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _text(x: float, y: float, content: str, kind: str = "") -> str:
    classes = f' class="{kind}"' if kind else ""
    return f'<text{classes} x="{x:g}" y="{y:g}">{escape(content)}</text>'
