"""What was made from what, laid out from left to right."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _EDGE = 104, 44, 34, 14, 12
_MOST_CHARACTERS: Final = 14

Look = Literal["source", "registered", "buffered", "writing", "planned"]


@dataclass(frozen=True)
class Node:
    """An artifact, or one that is still to come."""

    id: str
    title: str
    by: str
    look: Look
    target: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes with edges from what was used to what was made of it."""

    nodes: tuple[Node, ...]
    edges: frozenset[tuple[str, str]]

    def around(self, chosen: str, most: int) -> "Graph":
        """The nodes that are nearest to one of them, where all are too many."""
        if len(self.nodes) <= most:
            return self
        near, kept = [chosen], {chosen}
        for name in near:
            for source, target in sorted(self.edges):
                other = target if source == name else source if target == name else None
                if other is not None and other not in kept and len(kept) < most:
                    kept.add(other)
                    near.append(other)
        nodes = tuple(node for node in self.nodes if node.id in kept)
        return Graph(nodes, frozenset(edge for edge in self.edges if set(edge) <= kept))


def drawing_of(graph: Graph, selected: str | None, label: str) -> str:
    """As SVG; every text in it is escaped, every node that leads somewhere is a link."""
    columns = _columns(graph)
    tallest = max((len(column) for column in columns), default=1)
    width = len(columns) * (_WIDTH + _GAP_X) - _GAP_X + 2 * _EDGE
    height = tallest * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _EDGE
    places: dict[str, tuple[float, float]] = {}
    for number, column in enumerate(columns):
        top = (height - len(column) * (_HEIGHT + _GAP_Y) + _GAP_Y) / 2
        for row, node in enumerate(column):
            places[node.id] = (_EDGE + number * (_WIDTH + _GAP_X), top + row * (_HEIGHT + _GAP_Y))
    lines = "".join(_edge(places[source], places[target]) for source, target in sorted(graph.edges))
    boxes = "".join(_node(node, *places[node.id], is_selected=node.id == selected) for node in graph.nodes)
    return (
        f'<svg class="mb-graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}"><defs><marker id="mb-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 1L7 4L0 7z" fill="var(--t3)"/></marker></defs>{lines}{boxes}</svg>'
    )


def _columns(graph: Graph) -> list[list[Node]]:
    depth = _depths(graph)
    columns: dict[int, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        columns[depth[node.id]].append(node)
    row_of: dict[str, float] = {}
    ordered = []
    for number in sorted(columns):
        # Beside what it was made of, so that few lines cross.
        column = sorted(columns[number], key=lambda node: _mean(row_of.get(s) for s, t in graph.edges if t == node.id))
        row_of |= {node.id: row - len(column) / 2 for row, node in enumerate(column)}
        ordered.append(column)
    return ordered


def _depths(graph: Graph) -> dict[str, int]:
    depth = {node.id: 0 for node in graph.nodes}
    for _ in graph.nodes:
        changed = False
        for source, target in graph.edges:
            if depth[target] <= depth[source] < len(graph.nodes):
                depth[target] = depth[source] + 1
                changed = True
        if not changed:
            break
    return depth


def _edge(source: tuple[float, float], target: tuple[float, float]) -> str:
    x1, y1 = source[0] + _WIDTH, source[1] + _HEIGHT / 2
    x2, y2 = target[0] - 1, target[1] + _HEIGHT / 2
    bend = _GAP_X * 0.7
    if x2 - x1 > _GAP_X * 2 and abs(y1 - y2) < _HEIGHT:
        # Over the head of what stands between.
        over = min(y1, y2) - _HEIGHT / 2 - _GAP_Y / 2
        return (
            f'<path class="mb-edge" d="M{x1} {y1}C{x1 + bend} {y1} {x1 + bend / 2} {over} {x1 + _GAP_X} {over}'
            f'H{x2 - _GAP_X}C{x2 - bend / 2} {over} {x2 - bend} {y2} {x2} {y2}"/>'
        )
    return f'<path class="mb-edge" d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>'


def _node(node: Node, x: float, y: float, *, is_selected: bool) -> str:
    chosen = " mb-chosen" if is_selected else ""
    middle = x + _WIDTH / 2
    body = (
        f'<g class="mb-artifact mb-{node.look}{chosen}"><title>{escape(node.id)}</title>'
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="{22 if node.look == "source" else 6}"/>'
        f'<text x="{middle}" y="{y + 19}" class="mb-name">{escape(_short(node.title))}</text>'
        f'<text x="{middle}" y="{y + 34}" class="mb-by">{escape(_short(node.by))}</text></g>'
    )
    if not node.target:
        return body
    return f'<a href="{escape(node.target)}" data-artifact="{escape(node.id)}" aria-label="{escape(node.title)}">{body}</a>'


def _short(said: str) -> str:
    return said if len(said) <= _MOST_CHARACTERS else f"{said[: _MOST_CHARACTERS - 1]}…"


def _mean(rows: Iterable[float | None]) -> float:
    known: Sequence[float] = [row for row in rows if row is not None]
    return sum(known) / len(known) if known else 0.0
