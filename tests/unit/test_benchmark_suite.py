"""The chart has a bar for every number, as long as the number says."""

from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.chart import Panel, chart
from benchmarks.suite import MEASURES, Measure, numbers_of, panels_of, printed

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_their_numbers() -> None:
    panels = [Panel("A & B", "1/s", {"mindbus": 50, "peer": 100}), Panel("C", "s", {"mindbus": 3})]

    drawn = ElementTree.fromstring(chart(panels, "two <cores>"))

    ours, peer, alone = drawn.iter(f"{SVG}rect")
    assert float(ours.attrib["width"]) * 2 == float(peer.attrib["width"]) == float(alone.attrib["width"])
    assert [bar.get("class") for bar in (ours, peer, alone)] == ["ours", None, "ours"]
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert texts[0] == "A & B, 1/s (more is better)"
    assert texts[-1] == "two <cores>"


def test_a_measure_finds_its_numbers_in_a_report() -> None:
    measure = Measure("memory", "Search", "ms", {"mindbus": "asked_ms/kind (20 %)/index/0"}, is_less_better=True)

    assert measure.panel({"asked_ms": {"kind (20 %)": {"index": [5.2, 7.5]}}}).numbers == {"mindbus": 5.2}
    with pytest.raises(KeyError):
        measure.panel({"asked_ms": {}})


def test_a_peer_that_cannot_be_had_here_has_no_bar() -> None:
    measure = Measure("memory", "Search", "ms", {"mindbus": "ours", "peer": "peers/p50"}, may_lack=frozenset({"peer"}))

    assert measure.panel({"ours": 1, "peers": {}}).numbers == {"mindbus": 1}
    assert measure.panel({"ours": 1, "peers": {"p50": 2}}).numbers == {"mindbus": 1, "peer": 2}
    with pytest.raises(KeyError):
        measure.panel({"peers": {"p50": 2}})


def test_what_was_not_measured_has_no_panel() -> None:
    assert panels_of({}) == []
    [alone] = panels_of({"fleet_dialogue": {"together_per_second": 45.0}})
    assert alone.numbers == {"mindbus, 20 users": 45.0}


def test_every_measure_has_a_number_of_ours() -> None:
    for measure in MEASURES:
        assert any(name.startswith("mindbus") for name in measure.paths), measure.title


def test_every_leaf_of_a_report_is_listed() -> None:
    assert list(numbers_of({"a": {"b": 1234.5}, "c": [0.12345]})) == [("a/b", "1,234"), ("c/0", "0.123")]
    assert list(numbers_of({"a_span": [1, 2], "spans": {"b": [3, 4]}})) == [("a_span", "1-2"), ("spans/b", "3-4")]


def test_memories_are_one_table_with_what_is_left_out() -> None:
    row: dict[str, Any] = {"recall": {"5": 40.0, "10": 60.0}, "durability": "synced"}
    for name in ("p50_ms", "p99_ms", "stored_per_s"):
        row |= {name: 2.0, f"{name}_span": [1, 3]}
    facts = {"data": "LoCoMo", "turns": 4, "questions": 2, "rounds": 3, "embedded_per_s": 9.0}
    report = facts | {"memories": {"mindbus glm": row}, "left_out": {"mem0": "no network"}}

    *_, head, ours, missing = printed("memory_recall", report).splitlines()

    assert head.split()[:4] == ["recall@5,", "%", "recall@10,", "%"]
    assert ours.split() == ["mindbus", "glm", "40.0", "60.0", *["2.0", "(1-3)"] * 3, "synced"]
    assert missing == "left out: mem0: no network"
