"""mypy refuses a handler whose return type does not fit its command."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).with_name("handler_types.py")


@pytest.fixture(scope="module")
def errors() -> dict[int, list[str]]:
    """mypy's errors by line."""
    out, _, _ = api.run(["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary", str(CASES)])
    found: dict[int, list[str]] = defaultdict(list)
    for line in out.splitlines():
        if match := re.match(rf".*{CASES.name}:(\d+): error: (.*)", line):
            found[int(match[1])].append(match[2])
    return found


def test_mypy_refuses_every_wrong_handler_and_no_other(errors: dict[int, list[str]]) -> None:
    expected = {
        number: line.split("# error: ")[1]
        for number, line in enumerate(CASES.read_text().splitlines(), 1)
        if "# error: " in line
    }
    # The decorated function begins a line below its decorator.
    told = {number: " ".join(errors.get(number, []) + errors.get(number + 1, [])) for number in expected}

    assert {number: text for number, text in told.items() if expected[number] not in text} == {}
    assert set(errors) <= {line for number in expected for line in (number, number + 1)}
