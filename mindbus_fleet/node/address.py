"""Address and password of a private RabbitMQ node, and probes of its ports."""

import asyncio
import base64
import json
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from random import SystemRandom
from typing import Any, Self

LOOPBACK = "127.0.0.1"
# Below the ranges from which kernels take the ports of outgoing connections (Linux 32768, macOS 49152): a port
# chosen there may be gone by the time the broker binds it.
PORTS = range(21000, 32000)
AMQP_0_9_1 = b"AMQP\x00\x00\x09\x01"
METHOD_FRAME = 1
CONNECTION_START = b"\x00\x0a\x00\x0a"
EPMD_NAMES_REQUEST = b"\x00\x01n"
ANSWER_WITHIN_S = 2
VIEWER = "viewer"


@dataclass(frozen=True)
class NodeAddress:
    """Kept in the data folder, so that a restarted node is found where it was."""

    username: str
    password: str
    amqp_port: int
    management_port: int
    prometheus_port: int
    distribution_port: int
    epmd_port: int
    # Of the user `viewer`, who can look at the management UI and change nothing.
    viewer_password: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @classmethod
    def read(cls, text: bytes) -> Self:
        """The address of which `as_json` is the text."""
        return cls(**json.loads(text))

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def new(cls) -> Self:
        """A new password, and ports that are free now."""
        return cls(username="mindbus", password=secrets.token_urlsafe(24), **_free_ports(_PORT_FIELDS))

    def on_free_ports(self) -> Self:
        """A copy with another port wherever one is taken."""
        return replace(self, **_free_ports([f for f in _PORT_FIELDS if not _is_free(getattr(self, f))]))

    def on_new_ports(self) -> Self:
        """A copy with the same password on free ports."""
        return replace(self, **_free_ports(_PORT_FIELDS))

    @property
    def amqp_url(self) -> str:
        """The default vhost, with the password."""
        return f"amqp://{self.username}:{self.password}@{LOOPBACK}:{self.amqp_port}/"

    @property
    def management_url(self) -> str:
        """The management UI and API, without the password."""
        return f"http://{LOOPBACK}:{self.management_port}"

    def url_of(self, worker: str, password: str) -> str:
        """The default vhost, with the login of a worker."""
        return f"amqp://{worker}:{password}@{LOOPBACK}:{self.amqp_port}/"

    @property
    def viewer_url(self) -> str:
        """The management API with the login of the viewer."""
        return self.management_url.replace("://", f"://{VIEWER}:{self.viewer_password}@", 1)

    @property
    def prometheus_url(self) -> str:
        return f"http://{LOOPBACK}:{self.prometheus_port}/metrics"


_PORT_FIELDS = [field.name for field in fields(NodeAddress) if field.name.endswith("_port")]


def _free_ports(names: list[str]) -> dict[str, Any]:
    candidates = (port for port in SystemRandom().sample(PORTS, len(PORTS)) if _is_free(port))
    return {name: next(candidates) for name in names}


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker does: connections of its predecessor that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


async def knows_names(port: int) -> bool:
    """Whether an epmd answers."""
    return await _ask(port, EPMD_NAMES_REQUEST, 4) is not None


async def speaks_amqp(port: int) -> bool:
    """Whether the broker opens the AMQP handshake."""
    frame = await _ask(port, AMQP_0_9_1, 11)
    return frame is not None and frame[0] == METHOD_FRAME and frame[7:] == CONNECTION_START


async def lets_in(address: NodeAddress) -> bool:
    """Whether the management API knows the user."""
    credentials = base64.b64encode(f"{address.username}:{address.password}".encode()).decode()
    request = f"GET /api/whoami HTTP/1.0\r\nAuthorization: Basic {credentials}\r\n\r\n"
    status_line = await _ask(address.management_port, request.encode(), 12)
    return status_line is not None and status_line.endswith(b" 200")


async def is_awake(address: NodeAddress) -> bool:
    """Whether the node answers over HTTP: an AMQP handshake broken off would be a warning in its log each time."""
    return await _ask(address.management_port, b"GET / HTTP/1.0\r\n\r\n", 4) == b"HTTP"


async def _ask(port: int, question: bytes, answer_bytes: int) -> bytes | None:
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(question)
                return await reader.readexactly(answer_bytes)
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except (OSError, EOFError, TimeoutError):
        return None
