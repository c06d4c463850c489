"""A fresh machine for each test."""

from pathlib import Path

import pytest

from tests.sdk_kit import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
