"""Where the gateway listens, and which connections it keeps open."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from config.settings import FleetSettings
from gateway.web_server import DEFAULT_PORT, CannotListen, bound_socket, serving, url_of
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


GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
PUT = b"PUT / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n"


@asynccontextmanager
async def served(folder: Path, held: asyncio.Event, **limits: int) -> AsyncIterator[int]:
    """The port of a server that reads the body once `held` is set, and answers as long as asked for in the path."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await held.wait()
            length = len(await Request(scope, receive).body())
            padding = "." * int(scope["path"][1:] or "0")
            await Response(f"{padding}{length} bytes")(scope, receive, send)

    settings = FleetSettings(data_dir=folder)
    bound = bound_socket(settings)
    port: int = bound.getsockname()[1]
    async with serving(answer, bound, settings, **limits):
        yield port


@asynccontextmanager
async def clients(port: int, count: int) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Open connections, in the order of their opening."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    try:
        yield opened
    finally:
        for _, writer in opened:
            writer.close()


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server has closed the connection without a word."""
    try:
        return not await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return True


async def test_of_too_many_connections_those_that_have_asked_for_nothing_are_closed_first(tmp_path: Path) -> None:
    held = asyncio.Event()
    async with served(tmp_path, held, most_connections=5) as port, clients(port, 1) as [(answer, asking)]:
        asking.write(GET)
        async with clients(port, 12) as idle:
            closed = await asyncio.gather(*(ended(reader) for reader, _ in idle[:9]))
            async with clients(port, 1) as [(late_answer, asking_late)]:
                asking_late.write(GET)
                held.set()
                answers = [await asyncio.wait_for(reader.readline(), 10) for reader in (answer, late_answer)]

    assert all(closed)
    assert answers == [b"HTTP/1.1 200 OK\r\n"] * 2


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost:", PUT, PUT + b"a" * 10])
async def test_a_connection_that_does_not_send_its_request_in_time_is_closed(tmp_path: Path, begun: bytes) -> None:
    held = asyncio.Event()
    held.set()
    async with served(tmp_path, held, idle_s=1) as port, clients(port, 1) as [(reader, writer)]:
        writer.write(begun)
        assert await ended(reader)


async def test_one_that_was_answered_may_ask_again_for_as_long(tmp_path: Path) -> None:
    held = asyncio.Event()
    held.set()
    async with served(tmp_path, held, idle_s=1) as port, clients(port, 1) as [(reader, writer)]:
        writer.write(GET)
        await reader.readuntil(b"0 bytes")
        writer.write(GET)
        await reader.readuntil(b"0 bytes")
        writer.write(GET[:10])
        assert await ended(reader)


@pytest.mark.parametrize("request_of_one", [GET, PUT + b"a" * 1_000_000])
async def test_one_that_waits_for_us_is_not_closed(tmp_path: Path, request_of_one: bytes) -> None:
    held = asyncio.Event()
    async with served(tmp_path, held, idle_s=1) as port, clients(port, 2) as [(answer, asking), (beside, _)]:
        asking.write(request_of_one)
        # By then the other has been idle for as long as it may.
        assert await ended(beside)
        held.set()
        told = await asyncio.wait_for(answer.readline(), 10)

    assert told == b"HTTP/1.1 200 OK\r\n"


async def test_a_client_whose_body_we_kept_waiting_has_its_time_when_we_read_on(tmp_path: Path) -> None:
    held = asyncio.Event()
    async with (
        served(tmp_path, held, idle_s=1) as port,
        clients(port, 50) as [(earlier, _), *_],
        clients(port, 1) as [(answer, asking)],
    ):
        asking.write(PUT + b"a" * 100_000)
        async with clients(port, 50) as [*_, (later, _)]:
            # Its own time, had it been counted from what it has sent, is over between the ends of these two.
            assert await ended(earlier)
            held.set()
            assert await ended(later)
        asking.write(b"a" * 900_000)
        told = await asyncio.wait_for(answer.readline(), 10)

    assert told == b"HTTP/1.1 200 OK\r\n"


async def test_one_that_does_not_read_its_answer_is_closed(tmp_path: Path) -> None:
    held = asyncio.Event()
    held.set()
    async with served(tmp_path, held, idle_s=1) as port, clients(port, 1) as [(beside, _)]:
        with socket.create_connection(("127.0.0.1", port)) as idle:
            idle.sendall(b"GET /50000000 HTTP/1.1\r\nHost: here\r\n\r\n")
            assert await ended(beside)
            async with clients(port, 1) as [(later, _)]:
                assert await ended(later)
            read = 0
            with suppress(ConnectionError):
                while piece := await asyncio.to_thread(idle.recv, 1 << 20):
                    read += len(piece)

    assert read < 50_000_000


HEAD = b"POST / HTTP/1.1\r\nHost: here\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"GET /", b"a"),
        (HEAD + b"X: ", b"a"),
        (HEAD, b"X: a\r\n"),
        (CHUNKED + b"3;", b"a"),
        (CHUNKED + b"3\r\nabc\r\n0\r\n", b"X: a\r\n"),
    ],
)
async def test_a_request_whose_head_has_no_end_is_not_kept(tmp_path: Path, begin: bytes, again: bytes) -> None:
    held = asyncio.Event()
    async with served(tmp_path, held) as port, clients(port, 1) as [(reader, writer)]:
        writer.write(begin)
        sent = 0
        with suppress(ConnectionError):
            while not reader.at_eof() and sent < 8_000_000:
                writer.write(again * 1000)
                await writer.drain()
                sent += 1000 * len(again)
        held.set()

    # The buffers of both ends included.
    assert sent < 8_000_000


@pytest.mark.parametrize("pieces", [[b"a" * 1_000_000], [b"a"] * 100_000])
async def test_a_long_body_is_read_however_it_is_cut(tmp_path: Path, pieces: list[bytes]) -> None:
    held = asyncio.Event()
    held.set()
    async with served(tmp_path, held) as port, clients(port, 1) as [(reader, writer)]:
        writer.write(CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n")
        told = await asyncio.wait_for(reader.readuntil(b"bytes"), 30)

    assert told.endswith(b"\r\n\r\n%d bytes" % sum(map(len, pieces)))
