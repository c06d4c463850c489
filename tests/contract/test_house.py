"""The house rules that a program can check: sizes, names, and how docstrings begin."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "agents",
    "bus_schema",
    "config",
    "gateway",
    "language",
    "memory",
    "mindbus",
    "mindbus_fleet",
    "retrieval",
    "storage_service",
    "workers",
)
MOST_LINES = 300
MOST_MODULES = 680
# Gerunds that the field itself uses as nouns.
FIELD_GERUNDS = {"embedding", "logging", "packing", "processing", "ranking", "routing", "testing", "tuning"}
PICTURES = re.compile(r"(What|Who|Whoever|Whatever|The same|As in|Where)\b")


@cache
def modules() -> dict[Path, ast.Module]:
    """Every module of production code that is not empty, migrations included, by its path in the repository."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in sorted(paths) if path.stat().st_size}


def test_the_house_stays_small_enough_to_be_read() -> None:
    # Every change of a database brings a migration, which is never changed again.
    assert sum("migrations" not in path.parts for path in modules()) <= MOST_MODULES
    too_long = [str(path) for path in modules() if len((ROOT / path).read_text().splitlines()) > MOST_LINES]
    assert not too_long, f"more than {MOST_LINES} lines: split by reason to change"


def test_modules_are_named_by_nouns_of_the_field() -> None:
    gerunds = [
        str(path)
        for path in modules()
        if path.stem.endswith("ing")
        and "migrations" not in path.parts
        and path.stem.rpartition("_")[2] not in FIELD_GERUNDS
    ]
    assert not gerunds, "name a module by the field's noun, not by a gerund"


def test_a_class_name_means_one_thing() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_a_noun_or_a_verb(package: str) -> None:
    pictures = [
        f"{path}:{getattr(node, 'lineno', 1)}: {docstring.splitlines()[0]}"
        for path, tree in modules().items()
        if path.parts[0] == package
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (docstring := ast.get_docstring(node))
        and PICTURES.match(docstring)
    ]
    assert not pictures, "say what it is or does"
