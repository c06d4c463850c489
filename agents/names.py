"""Given names, by which people are recognised whom nobody has introduced."""

from functools import cache
from importlib import resources


@cache
def given_names(language: str) -> tuple[str, ...]:
    """Those of `en` or `ru`."""
    return tuple((resources.files("config") / "names" / f"{language}.txt").read_text(encoding="utf-8").split())
