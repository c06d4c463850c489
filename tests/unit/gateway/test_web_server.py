"""Where the gateway listens."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.settings import FleetSettings
from gateway.address import DEFAULT_PORT, CannotListen, bound_socket, url_of
from mindbus.files.disk import write_private
from mindbus.run_dir import gateway_url_file, last_gateway_url


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what the test opens."""
    with ExitStack() as opened:
        yield opened


def taken(stack: ExitStack) -> int:
    """A port on which somebody listens."""
    other = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    return int(other.getsockname()[1])


def test_a_port_that_is_set_is_taken_or_it_says_why_not(tmp_path: Path, stack: ExitStack) -> None:
    port = taken(stack)
    with pytest.raises(CannotListen, match=f"MINDBUS_GATEWAY_PORT.*127.0.0.1:{port}"):
        bound_socket(FleetSettings(data_dir=tmp_path, gateway_port=port))
    with pytest.raises(CannotListen, match=r"no\.such\.host\.invalid"):
        bound_socket(FleetSettings(data_dir=tmp_path, gateway_host="no.such.host.invalid"))


def test_without_one_it_is_never_at_a_loss(tmp_path: Path, stack: ExitStack) -> None:
    settings = FleetSettings(data_dir=tmp_path)
    first = stack.enter_context(bound_socket(settings))
    second = stack.enter_context(bound_socket(settings))

    assert len({url_of(first), url_of(second), f"http://127.0.0.1:{DEFAULT_PORT}"}) in (2, 3)


def test_it_comes_back_where_it_was(tmp_path: Path, stack: ExitStack) -> None:
    settings = FleetSettings(data_dir=tmp_path)
    with bound_socket(settings.model_copy(update={"gateway_port": 0})) as before:
        write_private(gateway_url_file(settings), url_of(before))
    again = stack.enter_context(bound_socket(settings))

    assert url_of(again) == last_gateway_url(settings)


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_its_address_can_be_opened_on_this_machine(tmp_path: Path, stack: ExitStack, host: str, shown: str) -> None:
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    listening = stack.enter_context(bound_socket(FleetSettings(data_dir=tmp_path, gateway_host=host, gateway_port=0)))

    assert url_of(listening) == f"http://{shown}:{listening.getsockname()[1]}"
