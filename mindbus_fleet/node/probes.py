"""Whether something listens, as opposed to merely having opened a port."""

import asyncio
import base64
from contextlib import suppress

from mindbus_fleet.node.address import LOOPBACK, NodeAddress

AMQP_0_9_1 = b"AMQP\x00\x00\x09\x01"
METHOD_FRAME = 1
CONNECTION_START = b"\x00\x0a\x00\x0a"
EPMD_NAMES_REQUEST = b"\x00\x01n"
ANSWER_WITHIN_S = 2


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
