"""The graph of a run as a drawing."""

import re

from gateway.ui.graph import Graph, Node, drawing_of


def node(name: str, title: str = "draft") -> Node:
    return Node(name, title, "pushkin", "registered", f"/runs/run_1?artifact={name}")


def graph(*edges: tuple[str, str]) -> Graph:
    names = dict.fromkeys(name for edge in edges for name in edge)
    return Graph(tuple(map(node, names)), frozenset(edges))


def left_of(drawing: str, name: str) -> float:
    found = re.search(rf'<title>draft\n{name}</title><rect x="([\d.]+)"', drawing)
    assert found is not None
    return float(found.group(1))


def test_what_is_used_stands_left_of_what_is_made_of_it() -> None:
    drawing = drawing_of(graph(("a", "b"), ("b", "c"), ("a", "c")), "c", "Lineage")
    assert left_of(drawing, "a") < left_of(drawing, "b") < left_of(drawing, "c")
    assert drawing.count('class="mb-edge"') == 3


def test_nobody_can_put_markup_into_it() -> None:
    hostile = Node("art_1", '<script>"', "<b>&", "source", '/runs/run_1?artifact="><script>')
    drawing = drawing_of(Graph((hostile,), frozenset()), None, '"><script>')
    assert "<script" not in drawing
    assert "<b>" not in drawing


def test_a_large_graph_shows_the_neighbourhood_of_the_chosen() -> None:
    chain = graph(*((f"n{place}", f"n{place + 1}") for place in range(100)))
    near = chain.around("n50", 5)
    assert {each.id for each in near.nodes} == {"n48", "n49", "n50", "n51", "n52"}
    assert len(near.edges) == 4


def test_a_circle_ends() -> None:
    assert "<svg" in drawing_of(graph(("a", "b"), ("b", "a")), None, "Lineage")


def test_an_empty_graph_is_drawn() -> None:
    assert "<svg" in drawing_of(Graph((), frozenset()), None, "Lineage")
