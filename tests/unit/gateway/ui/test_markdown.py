"""Markdown from the bus: laid out, obeyed in nothing."""

from time import thread_time

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


MOST = 64_000


def most(unit: str, times: int = MOST) -> str:
    """A text as long as any that is laid out, of one unit again and again."""
    return unit * min(times, MOST // len(unit))


# CommonMark's own list of inputs that are quadratic, or worse, for a careless parser; then what we found ourselves.
SECTION = "## Storm\n\nA [word](https://storm.org), `code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
PROSE = "The wind has turned, and with it the *whole* plan for the week. " * 20 + "\n\n"
DOCUMENT = (SECTION + PROSE) * 16

LABORIOUS = {
    "nested strong emphasis": "*a **a " * 1_000 + "b" + " a** a*" * 1_000,
    "closers of emphasis without openers": most("a_ ", 6_000),
    "openers of emphasis without closers": most("_a ", 6_000),
    "closers of links without openers": most("a] "),
    "openers of links without closers": most("[a "),
    "mismatched openers and closers": most("*a_ ", 3_000),
    "openers and closers a multiple of three apart": "a**b" + "c* " * 5_900,
    "openers of links and closers of emphasis": most("[ a_", 6_000),
    "brackets and parentheses": most("[ (]("),
    "pictures in brackets": most("![[]()"),
    "hard links in emphasis": most("**x [a*b**c*](d)", 1_000),
    "nested brackets": "[" * (MOST // 2) + "a" + "]" * (MOST // 2),
    "nested quotes": most("> ", MOST // 2 - 1) + "a",
    "nested lists": "".join(f"{'  ' * depth}* a\n" for depth in range(240)),
    "NUL": most("abc\0de\0"),
    "backticks": "".join(f"e{'`' * count}" for count in range(350)),
    "unclosed links": most("[a](<b"),
    "unclosed destinations": most("[a](b"),
    "unclosed comments": most("a <!-- b "),
    "unclosed instructions": most("a <? b "),
    "unclosed declarations": most("a <!A b "),
    "unclosed sections": most("a <![CDATA[ b "),
    "unclosed tags": most("<a\n"),
    "empty items": most("- " * 40 + "\n"),
    "many references": "".join(f"[{number}]: x\n" for number in range(3_000)) + "[0]" * 5_000,
    "references in references": most("[a]: u\n"),
    "brackets": "[" * 20_000,
    "quotes 200 deep": "> " * 200 + "a",
    "pictures": most("!["),
    "pictures in pictures": "![a " * 7_000 + "](b)" * 7_000,
    "tildes": most("~~a ", 3_000),
    "a quote with lazy lines": ">" * 100 + "a\n" + "b\n" * 20_000,
    "quotes in lists with lazy lines": "> - " * 20 + "\n" + "a\n" * 20_000,
    "a table without cells": "a|" * 2_000 + "\n" + "-|" * 2_000 + "\n" + "b\n" * 20_000,
    "a wide table": "|a" * 8_000 + "|\n" + "|-" * 8_000 + "|\n" + "|b|\n" * 300,
    "a long table": "a|b\n-|-\n" + "c|d\n" * 15_000,
    "lines": most("a\n"),
    "lines of an old Macintosh": most("a\r"),
    "items of an old Macintosh": most("- a\r"),
    "headings": most("a\n=\n"),
    "entities": most("&a;"),
    "escapes": most("\\a"),
    "links that are not ASCII": most("[a](http://йцу.рф/я)"),
    "a destination of brackets": "[a](" + "(" * 60_000,
    "runs of marks": "*" * 3_000 + "a" + "*" * 3_000,
    "tabs": most("\t"),
}


@pytest.mark.parametrize("content", [pytest.param(each, id=name) for name, each in LABORIOUS.items()])
def test_no_message_keeps_the_gateway_from_serving_others(content: str) -> None:
    # Measured by a document, which takes 10 ms here: a slower machine is as much slower with both.
    assert min(busy_s(content) / busy_s(DOCUMENT) for _ in range(3)) < 40


def busy_s(content: str) -> float:
    """Processor time of a layout: what a busy machine does meanwhile counts for nothing."""
    began = thread_time()
    as_html.__wrapped__(content)
    return thread_time() - began


def test_what_takes_long_to_lay_out_is_shown_as_written() -> None:
    assert as_html("<b>" + "[" * 20_000) == f'<pre class="mb-plain">&lt;b&gt;{"[" * 20_000}</pre>'


def test_a_long_document_is_laid_out_however_slow_the_machine() -> None:
    assert "<table>" in as_html(DOCUMENT)
    assert as_html(PROSE * 48).startswith("<p>")


def test_coloured_json_is_harmless() -> None:
    shown = coloured_json({"<b>": "<script>alert(1)</script>", "n": 1, "list": ["</pre>"]})
    assert "<script" not in shown
    assert "</pre>" not in shown
    assert "&lt;script&gt;" in shown
