"""Whether a token is asked for, where it comes from."""

from pathlib import Path

import pytest

from config.settings import FleetSettings
from gateway.access_tokens import is_loopback, token_file, token_of


def settings(folder: Path, **options: object) -> FleetSettings:
    return FleetSettings(data_dir=folder, **options)  # type: ignore[arg-type]  # as each test has them


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_on_a_loopback_address_none_is_asked_for_if_it_is_to_be_open(tmp_path: Path, host: str) -> None:
    assert is_loopback(host)
    assert token_of(settings(tmp_path, gateway_host=host, gateway_access="open")) is None
    assert not token_file(settings(tmp_path)).exists()
    assert token_of(settings(tmp_path, gateway_host=host)) is not None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "localhost.example.com"])
def test_elsewhere_one_is_made_once_for_this_user_alone(tmp_path: Path, host: str) -> None:
    here = settings(tmp_path, gateway_host=host, gateway_access="open")

    made, again = token_of(here), token_of(here)

    assert made is not None
    assert made.is_new
    assert len(made.text) >= 32
    assert again is not None
    assert (again.text, again.is_new) == (made.text, False)
    assert token_file(here).stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [token_file(here).name]


def test_one_that_is_set_is_asked_for_everywhere_and_written_nowhere(tmp_path: Path) -> None:
    here = settings(tmp_path, gateway_token="sixteen characters")

    token = token_of(here)

    assert token is not None
    assert (token.text, token.is_new) == ("sixteen characters", False)
    assert list(tmp_path.iterdir()) == []
    assert "sixteen" not in f"{token!r} {here!r}"


def test_a_short_one_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gateway_token"):
        settings(tmp_path, gateway_token="short")
