"""What the crash tests share: silence."""

from collections.abc import Iterator

import pytest

from mindbus.logs import configure_logs


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Thousands of processes die here, all of which would be logged."""
    configure_logs("CRITICAL", "console")
    yield
    configure_logs("INFO", "console")
