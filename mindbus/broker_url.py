"""Addresses of RabbitMQ: of one node, or of a cluster, amqp://USER:PASSWORD@HOST1:PORT1,HOST2:PORT2/VHOST."""

from urllib.parse import quote, urlsplit, urlunsplit

DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671}


class NotAnAddress(ValueError):
    """An address that names no host, or one without a name."""


def nodes_of(url: str) -> tuple[str, ...]:
    """The address of each node alone, in the order given. Raises NotAnAddress."""
    scheme, authority, path, query, fragment = urlsplit(url)
    login, at, hosts = authority.rpartition("@")
    names = [host.strip() for host in hosts.split(",")]
    if len(names) > 1 and not all(names):
        raise NotAnAddress("between its commas there has to be a host each")
    return tuple(urlunsplit((scheme, f"{login}{at}{name}", path, query, fragment)) for name in names)


def endpoints_of(url: str) -> list[tuple[str, int]]:
    """Host and port of each node. Raises NotAnAddress, ValueError where a port is none."""
    nodes = map(urlsplit, nodes_of(url))
    return [(node.hostname or "localhost", node.port or DEFAULT_PORTS.get(node.scheme, 5672)) for node in nodes]


def with_login(url: str, user: str, password: str) -> str:
    """The address with another login; all its nodes stay."""
    parts = urlsplit(url)
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@"
    return urlunsplit(parts._replace(netloc=login + parts.netloc.rpartition("@")[2]))
