"""Markdown from the bus: laid out, obeyed in nothing."""

import sys
from collections import Counter

import pytest

from gateway.ui.rich_text import as_html, coloured_json


def test_it_is_laid_out() -> None:
    assert "<strong>4 дня</strong>" in as_html("Отставание — **4 дня**")
    assert "<table>" in as_html("| a | b |\n|---|---|\n| 1 | 2 |")


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "<iframe src='//evil.example'></iframe>",
        "<svg/onload=alert(1)>",
        "text <b onclick=alert(1)>bold</b>",
    ],
)
def test_html_in_it_stays_text(hostile: str) -> None:
    laid_out = as_html(hostile)
    assert "&lt;" in laid_out
    for element in ("<script", "<img", "<iframe", "<svg", "<b "):
        assert element not in laid_out


def test_a_picture_is_a_link_so_that_nobody_learns_who_reads() -> None:
    laid_out = as_html("![chart](https://tracker.example/pixel.png)")
    assert "<img" not in laid_out
    assert '<a href="https://tracker.example/pixel.png">chart</a>' in laid_out


def test_a_link_runs_no_script() -> None:
    assert "javascript:" not in as_html("[go](javascript:alert(1))")


LONG = 32_000
LABORIOUS = {
    "brackets": "[" * LONG,
    "pictures": "![" * (LONG // 2),
    "links": "[a](" * (LONG // 4),
    "pairs of brackets": "[" * (LONG // 2) + "]" * (LONG // 2),
    "emphasis": "*a **a " * (LONG // 7),
    "underscores": "_a __a " * (LONG // 7),
    "tildes": "~~a " * (LONG // 4),
    "backticks": "".join(f"e{'`' * count}" for count in range(250)),
    "quotes": "> " * (LONG // 2) + "a",
    "lists": "".join(f"{'  ' * depth}* a\n" for depth in range(170)),
    "table": "a|" * 60 + "\n" + "-|" * 60 + "\n" + ("x|" * 60 + "\n") * 200,
    "lines": "a\n" * (LONG // 2),
    "items": "1. a\n" * (LONG // 5),
    "comments": "<!--" * (LONG // 4),
    "entities": "&a;" * (LONG // 3),
    "references": "".join(f"[{number}]: x\n" for number in range(2500)) + "[0]" * 900,
}


@pytest.mark.parametrize("content", [pytest.param(each, id=name) for name, each in LABORIOUS.items()])
def test_no_message_takes_long_to_lay_out(content: str) -> None:
    calls = Counter[str]()
    sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
    try:
        laid_out = as_html.__wrapped__(content)
    finally:
        sys.setprofile(None)

    # So many calls take less than 100 ms.
    assert calls["call"] < 600_000
    assert laid_out


def test_what_takes_long_to_lay_out_is_shown_as_written() -> None:
    assert as_html("<b>" + "[" * 2_000) == f'<pre class="mb-plain">&lt;b&gt;{"[" * 2_000}</pre>'


def test_coloured_json_is_harmless() -> None:
    shown = coloured_json({"<b>": "<script>alert(1)</script>", "n": 1, "list": ["</pre>"]})
    assert "<script" not in shown
    assert "</pre>" not in shown
    assert "&lt;script&gt;" in shown
