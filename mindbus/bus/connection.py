"""Ways onto the bus."""

import secrets
import socket
from urllib.parse import unquote, urlsplit

from bus_schema.codes import Code
from mindbus.bus.claims import Claims
from mindbus.bus.client import Client, Replies
from mindbus.bus.memory import MemoryBroker, MemoryTransport
from mindbus.bus.permissions import instance_mark
from mindbus.bus.sender import Sender
from mindbus.bus.transport import Transport
from mindbus.errors import MindBusError
from mindbus.files.store import has_direct_access, open_files
from mindbus.redaction import redact_other_logs
from mindbus.run_dir import broker_file, user_file
from mindbus.running_fleets import where_to_look
from mindbus.settings import Settings, parse_partitions
from mindbus.tenants import name_of

_memory_brokers: dict[str, MemoryBroker] = {}


class NoBroker(MindBusError, code=Code.UNAVAILABLE):
    """No RabbitMQ is known here: run `mindbus up` in another shell, or set MINDBUS_AMQP_URL."""


def connect(identity: str = "user.local", *, settings: Settings | None = None, service: str = "client") -> Client:
    """A client for a program of one's own: `async with mindbus.connect() as bus`. Raises NoBroker."""
    settings = settings or Settings()
    transport = open_transport(settings, service)
    mark = instance_mark(_user_of(find_broker(settings, service)))
    return new_client(transport, new_sender(service, identity, settings, mark), settings, exclusive=True)


def _user_of(url: str) -> str:
    """The user that an address logs in; none in memory, where the address may be any name."""
    return "" if url.startswith("memory://") else name_of(unquote(urlsplit(url).username or ""))


def new_client(transport: Transport, sender: Sender, settings: Settings, *, exclusive: bool = False) -> Client:
    """A client; its reply queue outlives a lost connection unless it is exclusive."""
    client = Client(transport, sender, Replies(transport, sender, exclusive=exclusive), settings.request_timeout_s)
    sender.claims.ask_through(client)
    return client


def new_sender(service: str, identity: str, settings: Settings, mark: str = "") -> Sender:
    """A participant with an instance of its own, whose name begins with a mark."""
    redact_other_logs()
    instance = f"{mark}{secrets.token_hex(4)}"
    full = f"{identity}.{instance}" if identity.startswith("agent.") and identity.count(".") == 1 else identity
    claims = Claims(open_files(settings) if has_direct_access(settings) else None)
    return Sender(
        service,
        instance,
        full,
        f"reply.{service}.{instance}",
        claims,
        settings.max_body_bytes,
        partitions=parse_partitions(settings.partitions),
    )


def open_transport(settings: Settings, name: str) -> Transport:
    """The transport of the broker that the settings, or a running `mindbus up`, name. Raises NoBroker."""
    return open_broker(find_broker(settings, name), f"mindbus {name}", settings.publish_timeout_s, name)


def open_broker(url: str, program: str, publish_timeout_s: float, service: str = "") -> Transport:
    """The transport of a broker, shown there under the name of a program."""
    if url.startswith("memory://"):
        return MemoryTransport(_memory_brokers.setdefault(url, MemoryBroker()))
    # Imported here: the in-memory bus needs no AMQP client.
    from mindbus.bus.rabbit import RabbitTransport

    return RabbitTransport(url, f"{program}@{socket.gethostname()}", publish_timeout_s, service)


def find_broker(settings: Settings, worker: str | None = None) -> str:
    """The AMQP address, with the login of a worker where it has one. Raises NoBroker."""
    address = broker_file(settings)
    if settings.amqp_url:
        return settings.amqp_url
    if worker is not None and (own := user_file(settings, worker)).exists():
        return own.read_text().strip()
    if address.exists():
        return address.read_text().strip()
    raise NoBroker(f"{NoBroker.__doc__} {where_to_look(settings)}")
