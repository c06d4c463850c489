"""Extras that texts tell people to install are those of the packages."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {"mindbus": ROOT / "pyproject.toml", "mindbus-fleet": ROOT / "mindbus_fleet" / "pyproject.toml"}
NAMES = ("*.md", "*.py", "*.toml", "*.yaml", "*.yml", "Dockerfile*")
NAMED = re.compile(r"\b(mindbus(?:-fleet)?)\[([\w,-]+)\]")


def files() -> Iterator[Path]:
    """Those of people, in folders that are neither hidden nor built."""
    yield from ROOT.glob("*.md")
    for folder in ROOT.iterdir():
        if folder.is_dir() and folder.name[0] not in "._" and folder.name not in {"build", "dist", "site"}:
            yield from (path for name in NAMES for path in folder.rglob(name) if "node_modules" not in path.parts)


def named_extras() -> Iterator[tuple[str, str, str]]:
    """Package, extra, and the file that names it."""
    for path in files():
        for package, extras in NAMED.findall(path.read_text()):
            yield from ((package, extra, str(path.relative_to(ROOT))) for extra in extras.split(","))


def test_every_extra_that_is_named_exists() -> None:
    declared = {
        package: set(tomllib.loads(path.read_text())["project"]["optional-dependencies"])
        for package, path in PACKAGES.items()
    }
    named = set(named_extras())

    assert {extra for _, extra, _ in named} >= {"embed", "mcp"}
    assert [each for each in named if each[1] not in declared[each[0]]] == []
