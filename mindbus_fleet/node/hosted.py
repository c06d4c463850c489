"""The private node of whoever hosts a tenant, as that tenant uses it: it is neither started nor ended from here."""

from collections.abc import Sequence
from pathlib import Path

from mindbus.run_dir import RunSettings
from mindbus.tenants import host_dir, with_vhost
from mindbus_fleet.node.address import NodeAddress
from mindbus_fleet.node.folder import NodeFolder
from mindbus_fleet.node.installation import NodeError
from mindbus_fleet.node.private import PrivateNode


class HostDown(NodeError):
    """The fleet that hosts this tenant is not running: start it first, with the same command without MINDBUS_TENANT."""


class HostBroker:
    """Stands in the place of a `PrivateNode`, for one that another supervisor keeps alive."""

    pid = None

    def __init__(self, host: Path, tenant: str) -> None:
        """`host` is the data folder of the fleet that has the node."""
        self._folder, self._tenant = NodeFolder(host / "broker"), tenant
        self._url_file = host / "run" / "amqp_url"
        self._address: NodeAddress | None = None
        # The workers of a tenant get their users when they start.
        self.worker_urls: dict[str, str] = {}

    @property
    def address(self) -> NodeAddress:
        """Address of the node. Raises HostDown."""
        if self._address is None:
            raise HostDown
        return self._address

    @property
    def amqp_url(self) -> str:
        """The tenant's virtual host, with the administrator's password."""
        return with_vhost(self.address.amqp_url, self._tenant)

    @property
    def is_running(self) -> bool:
        """False once the node has another address; one that is just away is waited for."""
        return not self._url_file.exists() or self._folder.address() == self._address

    async def start(self) -> None:
        """Find the node. Raises HostDown."""
        if not self._url_file.exists():
            raise HostDown
        self._address = self._folder.address()

    async def stop(self) -> None:
        """Leave it to its own supervisor."""

    async def answers(self) -> bool:
        """Its own supervisor asks."""
        return True

    def end_frozen(self) -> None:
        """Its own supervisor does."""


def broker_of(settings: RunSettings, workers: Sequence[str]) -> PrivateNode | HostBroker:
    """The node to be kept alive here; of a tenant that of its host."""
    host = host_dir(settings.data_dir.absolute(), settings.tenant)
    if settings.tenant and host is not None:
        return HostBroker(host, settings.tenant)
    return PrivateNode(settings.data_dir / "broker", workers=workers)
