"""Ways onto the bus."""

import secrets
import socket
from pathlib import Path

from bus_schema.replies import Code
from mindbus.bus.claims import Claims
from mindbus.bus.client import Client, Replies
from mindbus.bus.memory import MemoryBroker, MemoryTransport
from mindbus.bus.sender import Sender
from mindbus.bus.transport import Transport
from mindbus.errors import MindBusError
from mindbus.files.store import has_direct_access, open_files
from mindbus.logs import keep_signatures_out
from mindbus.settings import Settings

_memory_brokers: dict[str, MemoryBroker] = {}


class NoBroker(MindBusError, code=Code.UNAVAILABLE):
    """No RabbitMQ is known here: run `mindbus up` in another shell, or set MINDBUS_AMQP_URL."""


def connect(identity: str = "user.local", *, settings: Settings | None = None, service: str = "client") -> Client:
    """A client for a program of one's own: `async with mindbus.connect() as bus`. Raises NoBroker."""
    settings = settings or Settings()
    transport = open_transport(settings, service)
    return new_client(transport, new_sender(service, identity, settings), settings, exclusive=True)


def new_client(transport: Transport, sender: Sender, settings: Settings, *, exclusive: bool = False) -> Client:
    """A client; its reply queue outlives a lost connection unless it is exclusive."""
    client = Client(transport, sender, Replies(transport, sender, exclusive=exclusive), settings.request_timeout_s)
    sender.claims.ask_through(client)
    return client


def new_sender(service: str, identity: str, settings: Settings) -> Sender:
    """A participant with an instance of its own."""
    keep_signatures_out()
    instance = secrets.token_hex(4)
    full = f"{identity}.{instance}" if identity.startswith("agent.") and identity.count(".") == 1 else identity
    claims = Claims(open_files(settings) if has_direct_access(settings) else None)
    return Sender(service, instance, full, f"reply.{service}.{instance}", claims, settings.max_body_bytes)


def open_transport(settings: Settings, name: str) -> Transport:
    """The transport of the broker that the settings, or a running `mindbus up`, name. Raises NoBroker."""
    url = find_broker(settings)
    if url.startswith("memory://"):
        return MemoryTransport(_memory_brokers.setdefault(url, MemoryBroker()))
    # Imported here: the in-memory bus needs no AMQP client.
    from mindbus.bus.rabbit import RabbitTransport

    return RabbitTransport(url, f"mindbus {name}@{socket.gethostname()}", settings.publish_timeout_s)


def find_broker(settings: Settings) -> str:
    """The AMQP address. Raises NoBroker."""
    address = broker_file(settings)
    if settings.amqp_url:
        return settings.amqp_url
    if address.exists():
        return address.read_text().strip()
    raise NoBroker(NoBroker.__doc__)


def broker_file(settings: Settings) -> Path:
    """File in which `mindbus up` keeps the AMQP address of its private broker, readable by this user only."""
    return settings.run_dir / "amqp_url"
