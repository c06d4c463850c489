"""Markdown from the bus: laid out, obeyed in nothing."""

import pytest

from gateway.ui.markdown import as_html, coloured_json


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


def test_coloured_json_is_harmless() -> None:
    shown = coloured_json({"<b>": "<script>alert(1)</script>", "n": 1, "list": ["</pre>"]})
    assert "<script" not in shown
    assert "</pre>" not in shown
    assert "&lt;script&gt;" in shown
