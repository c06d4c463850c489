"""Extras that texts tell people to install are those of the packages."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {"mindbus": ROOT / "pyproject.toml", "mindbus-fleet": ROOT / "mindbus_fleet" / "pyproject.toml"}
PLACES = ("*.md", "docs/**/*.md", "*/**/*.py", "docker/**/*")
NAMED = re.compile(r"\b(mindbus(?:-fleet)?)\[([\w,-]+)\]")


def named_extras() -> Iterator[tuple[str, str, str]]:
    """Package, extra, and the file that names it."""
    for path in {path for place in PLACES for path in ROOT.glob(place) if path.is_file()}:
        if any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            continue
        for package, extras in NAMED.findall(path.read_text(errors="ignore")):
            yield from ((package, extra, str(path.relative_to(ROOT))) for extra in extras.split(","))


def test_every_extra_that_is_named_exists() -> None:
    declared = {
        package: set(tomllib.loads(path.read_text())["project"]["optional-dependencies"])
        for package, path in PACKAGES.items()
    }
    named = set(named_extras())

    assert {extra for _, extra, _ in named} >= {"embed", "mcp"}
    assert [each for each in named if each[1] not in declared[each[0]]] == []
