"""Markdown from the bus as HTML in which nothing runs, from which nothing is fetched."""

import re
from functools import lru_cache
from typing import Final

import markdown2  # type: ignore[import-untyped]
from nicegui import ui
from nicegui.element import Element

_EXTRAS: Final = ("fenced-code-blocks", "tables", "cuddled-lists", "strike", "break-on-newline")
_PICTURE: Final = re.compile(r'<img src="([^"]*)" alt="([^"]*)"[^>]*>')


def markdown(content: str, classes: str = "") -> Element:
    """Lay it out; the browser's own sanitiser has the last word."""
    return ui.html(as_html(content), sanitize=True).classes(f"mb-md {classes}")


@lru_cache(maxsize=500)
def as_html(content: str) -> str:
    """HTML that was in it stays text; a picture is a link, since showing it would tell its server who reads."""
    laid_out = str(markdown2.markdown(content, extras=list(_EXTRAS), safe_mode="escape"))
    return _PICTURE.sub(r'<a href="\1">\2</a>', laid_out)
