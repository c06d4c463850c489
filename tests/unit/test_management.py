"""Address of the management API and its login."""

from pathlib import Path

import pytest

from mindbus.management import management_url
from mindbus.settings import Settings

AMQP = "amqp://ann:s%40fe@rabbit:5672/"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://rabbit:15672", "http://ann:s%40fe@rabbit:15672"),
        ("https://eve:other@ui.example/rabbit", "https://eve:other@ui.example/rabbit"),
        (None, "http://ann:s%40fe@rabbit:15672"),
    ],
)
def test_without_a_login_of_its_own_it_has_that_of_amqp(given: str | None, used: str, tmp_path: Path) -> None:
    settings = Settings(amqp_url=AMQP, management_url=given, data_dir=tmp_path)

    assert management_url(settings, AMQP) == used
