"""Markdown as blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.markdown import BlockKind, MarkdownBlock, parse, plain, plain_document, quoted, render

DOCUMENT = """# Title

A paragraph
on two lines.

## Section

- one
    - deeper
        - deepest
- two **bold**

1. first
2. second

| a | b |
|---|---|
| 1 | 2 |

```python
x = 1

y = 2
```

> quoted
> twice

---

The end.
"""


def kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind.value, block.text) for block in parse(text)]


def test_a_document_is_written_back_as_it_was_but_for_wrapped_lines() -> None:
    assert render(parse(DOCUMENT)) == DOCUMENT.replace("paragraph\non", "paragraph on")


def test_blocks_know_their_depth_and_marker() -> None:
    items = [block for block in parse(DOCUMENT) if block.kind is BlockKind.ITEM]

    assert [(item.level, item.marker) for item in items] == [
        (0, "-"),
        (1, "-"),
        (2, "-"),
        (0, "-"),
        (0, "1."),
        (0, "2."),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Title\n=====\n\nSub\n---\ntext", [("heading", "Title"), ("heading", "Sub"), ("prose", "text")]),
        ("## Closed ##", [("heading", "Closed")]),
        ("**A label:**\ntext", [("heading", "A label"), ("prose", "text")]),
        ("#hashtag is no heading", [("prose", "#hashtag is no heading")]),
        ("* one\n+ two\n• three", [("item", "one"), ("item", "two"), ("item", "three")]),
        ("- one\n  goes on\n- two", [("item", "one goes on"), ("item", "two")]),
        ("a wrapped line\n— with a dash\n2. or a number", [("prose", "a wrapped line — with a dash 2. or a number")]),
        ("— Иду.\n— Стой.", [("item", "Иду."), ("item", "Стой.")]),
        ("text\n- item", [("prose", "text"), ("item", "item")]),
        ("Line one\nLine two\n1998 also", [("item", "Line one"), ("item", "Line two"), ("item", "1998 also")]),
        ("Wrapped prose, which\ngoes on.", [("prose", "Wrapped prose, which goes on.")]),
        ("a | b\n--- | ---\n1 | 2\n\nend", [("table", "a | b\n--- | ---\n1 | 2"), ("prose", "end")]),
        ("```\nnever closed", [("code", "```\nnever closed\n```")]),
        ("```", [("code", "```\n```")]),
        ("~~~\n```\n~~~", [("code", "~~~\n```\n~~~")]),
        ("---\ntitle: x\n---\ntext", [("prose", "text")]),
        ("a <!-- hidden\nthing --> b", [("prose", "a b")]),
        ("text <!-- never closed", [("prose", "text")]),
        ("\ufeffone\r\n\r\ntwo\rtoo", [("prose", "one"), ("prose", "two too")]),
        ("* * *", [("rule", "---")]),
        ("", []),
    ],
)
def test_odd_documents_are_read_as_meant(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_numbered_items_count_up_whatever_was_taken_out() -> None:
    items = [MarkdownBlock(BlockKind.ITEM, text, level, marker) for text, level, marker in
             [("a", 0, "1."), ("x", 1, "1."), ("y", 1, "4."), ("b", 0, "7."), ("z", 1, "1.")]]  # fmt: skip

    assert render(items) == "1. a\n    1. x\n    2. y\n2. b\n    1. z\n"


def test_lists_of_different_sorts_are_kept_apart() -> None:
    assert render(parse("- a\n1. b")) == "- a\n\n1. b\n"


@given(st.text(alphabet="aБ1 .:-*#>|`~=\n\t", max_size=200))
def test_reading_what_was_written_gives_the_same_text(text: str) -> None:
    once = render(parse(text))

    assert render(parse(once)) == once


def test_plain_text_has_no_marks_left() -> None:
    assert plain("**Bold** _and_ `code`, [link](http://x), snake_case") == "Bold and code, link, snake_case"


def test_a_document_in_one_line_has_no_marks() -> None:
    document = "# Title\n\n- **one** item\n\n```sh\nmindbus up\n```\n\nEnd."
    assert plain_document(document) == "Title one item mindbus up End."


def test_the_cells_of_a_table_are_words_one_after_the_other() -> None:
    table = "Limits:\n\n| name | what it is |\n|---|:-:|\n| **a-b** | one \\| two |\n\nEnd."
    assert plain_document(table) == "Limits: name what it is a-b one | two End."


def test_a_quote_keeps_its_empty_lines() -> None:
    assert quoted("a\n\nb") == "> a\n>\n> b"
