"""What the crash tests share: silence, a seed to replay."""

from collections.abc import Iterator

import pytest

from mindbus.logs import configure_logs


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="tell only the schedule of this seed, print its trace")


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Thousands of processes die here, all of which would be logged."""
    configure_logs("CRITICAL", "console")
    yield
    configure_logs("INFO", "console")
