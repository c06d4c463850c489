"""Directed graphs, laid out from left to right as SVG."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Final, Literal, NamedTuple

_HEIGHT, _GAP_X, _GAP_Y, _EDGE = 44, 28, 14, 10
_LANE, _BEND = 9, 12
_NARROWEST, _PER_CHARACTER, _PADDING = 56, 6.4, 20
_MAX_CHARACTERS: Final = 16

Look = Literal["source", "registered", "buffered", "writing", "planned"]


@dataclass(frozen=True)
class Node:
    """A box of two lines, the first at most `longest` characters long; with a target it is a link."""

    id: str
    title: str
    by: str
    look: Look
    target: str = ""
    longest: int = _MAX_CHARACTERS

    @property
    def width(self) -> float:
        longest = max(min(len(each), self.longest) for each in (self.title, self.by))
        return max(_NARROWEST, longest * _PER_CHARACTER + _PADDING)


@dataclass(frozen=True)
class Graph:
    """Nodes with edges from sources to results; `weak` are those of the edges that are drawn with dashes."""

    nodes: tuple[Node, ...]
    edges: frozenset[tuple[str, str]]
    weak: frozenset[tuple[str, str]] = frozenset()

    def around(self, chosen: str, max_nodes: int) -> "Graph":
        """At most so many nodes, those nearest to the selected one."""
        if len(self.nodes) <= max_nodes:
            return self
        queue, chosen_ids = [chosen], {chosen}
        for name in queue:
            for source, target in sorted(self.edges):
                neighbour = target if source == name else source if target == name else None
                if neighbour is not None and neighbour not in chosen_ids and len(chosen_ids) < max_nodes:
                    chosen_ids.add(neighbour)
                    queue.append(neighbour)
        nodes = tuple(node for node in self.nodes if node.id in chosen_ids)
        return Graph(nodes, frozenset(edge for edge in self.edges if set(edge) <= chosen_ids), self.weak)


class _Place(NamedTuple):
    x: float
    y: float
    width: float
    column: int


def drawing_of(graph: Graph, selected: str | None, label: str) -> str:
    """The graph as SVG with escaped texts; nodes with a target are links."""
    columns = _columns(graph)
    number_of = {node.id: number for number, column in enumerate(columns) for node in column}
    sources = {source for source, target in graph.edges if number_of[target] - number_of[source] > 1}
    # What goes far goes over or under the rest, in a lane of its own for each thing that is used there.
    lanes = {
        source: place // 2 + 1 if place % 2 == 0 else -(place // 2 + 1)
        for place, source in enumerate(sorted(sources, key=lambda source: (number_of[source], source)))
    }
    above, below = (len(sources) + 1) // 2 * _LANE, len(sources) // 2 * _LANE
    tallest = max((len(column) for column in columns), default=1) * (_HEIGHT + _GAP_Y) - _GAP_Y
    places: dict[str, _Place] = {}
    x: float = _EDGE
    for number, column in enumerate(columns):
        width = max(node.width for node in column)
        top = _EDGE + above + (tallest - len(column) * (_HEIGHT + _GAP_Y) + _GAP_Y) / 2
        for row, node in enumerate(column):
            places[node.id] = _Place(x, top + row * (_HEIGHT + _GAP_Y), width, number)
        x += width + _GAP_X
    width, height = x - _GAP_X + _EDGE, tallest + above + below + 2 * _EDGE
    lines = "".join(
        f'<path class="mb-edge{" mb-weak-edge" if (source, target) in graph.weak else ""}" d="'
        f'{_edge(places[source], places[target], lanes.get(source, 0), _EDGE + above, _EDGE + above + tallest)}"/>'
        for source, target in sorted(graph.edges)
    )
    boxes = "".join(_node(node, places[node.id], is_selected=node.id == selected) for node in graph.nodes)
    return (
        f'<svg class="mb-graph" width="{width:.0f}" height="{height:.0f}" role="group" aria-label="{escape(label)}">'
        '<defs><marker id="mb-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 1L7 4L0 7z" fill="var(--t3)"/></marker></defs>{lines}{boxes}</svg>'
    )


def _columns(graph: Graph) -> list[list[Node]]:
    depth = _depths(graph)
    row_of: dict[str, float] = {}
    columns = []
    for number in sorted(set(depth.values())):
        nodes = [node for node in graph.nodes if depth[node.id] == number]
        # Beside what it was made of, so that few lines cross.
        column = sorted(nodes, key=lambda node: _mean(row_of.get(s) for s, t in graph.edges if t == node.id))
        row_of |= {node.id: row - len(column) / 2 for row, node in enumerate(column)}
        columns.append(column)
    return columns


def _depths(graph: Graph) -> dict[str, int]:
    depth = {node.id: 0 for node in graph.nodes}
    # A circle, which storage would not have accepted, ends when every node has been looked at.
    for _ in graph.nodes:
        deeper = {
            t: depth[s] + 1 for s, t in sorted(graph.edges, key=lambda edge: depth[edge[0]]) if depth[t] <= depth[s]
        }
        if not deeper:
            break
        depth |= deeper
    return depth


def _edge(source: _Place, target: _Place, lane: int, top: float, bottom: float) -> str:
    x1, y1 = source.x + source.width, source.y + _HEIGHT / 2
    x2, y2 = target.x - 1, target.y + _HEIGHT / 2
    if target.column - source.column > 1:
        over = top - lane * _LANE + 3 if lane > 0 else bottom - lane * _LANE - 3
        return (
            f"M{x1:.0f} {y1:.0f}C{x1 + _BEND:.0f} {y1:.0f} {x1:.0f} {over:.0f} "
            f"{x1 + _BEND * 2:.0f} {over:.0f}H{x2 - _BEND * 2:.0f}C{x2:.0f} {over:.0f} {x2 - _BEND:.0f} {y2:.0f} "
            f"{x2:.0f} {y2:.0f}"
        )
    bend = _GAP_X * 0.7
    return f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"


def _node(node: Node, place: _Place, *, is_selected: bool) -> str:
    chosen = " mb-chosen" if is_selected else ""
    middle = place.x + place.width / 2
    title, by = (escape(_short(each, node.longest)) for each in (node.title, node.by))
    body = (
        f'<g class="mb-artifact mb-{node.look}{chosen}"><title>{escape(node.title)}\n{escape(node.id)}</title>'
        f'<rect x="{place.x:.0f}" y="{place.y:.0f}" width="{place.width:.0f}" height="{_HEIGHT}" '
        f'rx="{22 if node.look == "source" else 6}"/>'
        f'<text x="{middle:.0f}" y="{place.y + 19:.0f}" class="mb-name">{title}</text>'
        f'<text x="{middle:.0f}" y="{place.y + 34:.0f}" class="mb-by">{by}</text></g>'
    )
    if not node.target:
        return body
    name, target = escape(node.title), escape(node.target)
    return f'<a href="{target}" data-artifact="{escape(node.id)}" aria-label="{name}">{body}</a>'


def _short(title: str, longest: int) -> str:
    return title if len(title) <= longest else f"{title[: longest - 1]}…"


def _mean(rows: Iterable[float | None]) -> float:
    values = [row for row in rows if row is not None]
    return fmean(values) if values else 0.0
