"""Markdown and JSON from the bus as HTML in which nothing runs, from which nothing is fetched."""

import html
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from nicegui import ui
from nicegui.element import Element


class _Parser(MarkdownIt):
    """CommonMark with tables, strikethrough and line breaks as written; HTML stays text, unsafe links lead nowhere."""

    def __init__(self) -> None:
        super().__init__("js-default", {"html": False, "breaks": True, "linkify": False, "typographer": False})
        self.add_render_rule("image", _as_link)

    def validateLink(self, url: str) -> bool:  # noqa: N802  # the library's hook
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802  # the library's hook
        return super().normalizeLink(url) if super().validateLink(url) else "#"


def markdown(content: str, classes: str = "") -> Element:
    """An element that shows Markdown; the browser's own sanitiser has the last word."""
    return ui.html(as_html(content), sanitize=True).classes(f"mb-md {classes}")


@lru_cache(maxsize=500)
def as_html(content: str) -> str:
    """HTML of Markdown; a picture is a link, since showing it would tell its server who reads."""
    return str(_PARSER.render(content))


def _as_link(_: RendererHTML, tokens: Sequence[Token], at: int, *_args: Any) -> str:
    address = escapeHtml(str(tokens[at].attrs["src"]))
    return f'<a href="{address}">{escapeHtml(tokens[at].content)}</a>'


_PARSER: Final = _Parser()


def json_view(value: object) -> Element:
    return ui.html(coloured_json(value), tag="pre").classes("mb-json")


def coloured_json(value: object) -> str:
    """Indented JSON as escaped HTML with names, strings and numbers marked."""
    lines = []
    for line in json.dumps(value, ensure_ascii=False, indent=2).splitlines():
        name, colon, content = line.partition('": ')
        if not colon or not name.lstrip().startswith('"'):
            name, content = "", line
        shown = f"<b>{html.escape(name)}&quot;</b>: " if name else ""
        mark = (
            "i" if content.lstrip().startswith('"') else "u" if content.strip(" ,")[:1] in "-0123456789tfn" else "span"
        )
        lines.append(f"{shown}<{mark}>{html.escape(content)}</{mark}>")
    return "\n".join(lines)
