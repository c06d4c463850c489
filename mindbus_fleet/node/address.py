"""Where a private node listens, with the password it asks for."""

import secrets
import socket
from random import SystemRandom
from typing import Self

from pydantic import BaseModel, ConfigDict

LOOPBACK = "127.0.0.1"
# Below the ranges from which kernels take the ports of outgoing connections (Linux 32768, macOS 49152): a port
# chosen there may be gone by the time the broker binds it.
PORTS = range(21000, 32000)


class NodeAddress(BaseModel):
    """Kept in the data folder, so that a restarted node is found where it was."""

    model_config = ConfigDict(frozen=True)

    username: str
    password: str
    amqp_port: int
    management_port: int
    prometheus_port: int
    distribution_port: int
    epmd_port: int

    @classmethod
    def new(cls) -> Self:
        """A new password, and ports that are free now."""
        return cls(username="mindbus", password=secrets.token_urlsafe(24), **_free_ports(_PORT_FIELDS))

    def on_free_ports(self) -> Self:
        """The same address, with another port wherever somebody has taken ours."""
        return self.model_copy(update=_free_ports([f for f in _PORT_FIELDS if not _is_free(getattr(self, f))]))

    def on_new_ports(self) -> Self:
        """The same password, on ports that are free now."""
        return self.model_copy(update=_free_ports(_PORT_FIELDS))

    @property
    def amqp_url(self) -> str:
        """The default vhost, with the password."""
        return f"amqp://{self.username}:{self.password}@{LOOPBACK}:{self.amqp_port}/"

    @property
    def management_url(self) -> str:
        """The management UI and API, without the password."""
        return f"http://{LOOPBACK}:{self.management_port}"

    @property
    def prometheus_url(self) -> str:
        """The broker's own metrics."""
        return f"http://{LOOPBACK}:{self.prometheus_port}/metrics"


_PORT_FIELDS = [field for field in NodeAddress.model_fields if field.endswith("_port")]


def _free_ports(fields: list[str]) -> dict[str, int]:
    candidates = (port for port in SystemRandom().sample(PORTS, len(PORTS)) if _is_free(port))
    return {field: next(candidates) for field in fields}


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker does: connections of its predecessor that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
