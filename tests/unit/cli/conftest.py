from collections.abc import Iterator

import pytest

from mindbus.logs import configure_logs


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command sets up the logs of its process, which here is everybody's."""
    yield
    configure_logs("DEBUG", "console")
