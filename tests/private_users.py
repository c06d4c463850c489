"""A private node whose workers and clients have users of their own, as `mindbus up` leaves it."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from yarl import URL

from bus_schema.delegation import client_identity, is_operator_by, targets_of
from config.settings import FleetSettings
from mindbus.bus.permissions import Permissions, definitions_of, merged, of_client, of_worker
from mindbus.bus.topology import backbone, of_service, rungs_of
from mindbus.bus.topology_admin import apply
from mindbus.files.disk import write_private
from mindbus.management import Management
from mindbus.run_dir import broker_file, management_file, user_file
from mindbus_fleet.node.private import PrivateNode
from tests.command_line import require_rabbitmq
from tests.fleets import settings_for

RUNGS = "50ms,100ms,300ms"
_HEARD = {"gateway": ("#",)}


@contextmanager
def private_node(
    folder: Path, users: Sequence[str], *, targets: Sequence[str] = (), unbounded: Sequence[str] = ()
) -> Iterator[PrivateNode]:
    """A running node with these users; workers' queues exist, and each user has what the template gives it.

    All of them may command `targets` besides; those who are `unbounded` may do anything.
    """
    require_rabbitmq()
    node = PrivateNode(folder, workers=users)
    asyncio.run(node.start())
    try:
        granted = {user: Permissions() if user in unbounded else template_for(user, targets) for user in users}
        asyncio.run(_provide(node, granted))
        yield node
    finally:
        asyncio.run(node.kill())


def settings_of(node: PrivateNode, data_dir: Path) -> FleetSettings:
    """As `mindbus up` leaves them: files with the addresses of the administrator, the management API, each user."""
    settings = settings_for(node.amqp_url, data_dir, retry_rungs=RUNGS).model_copy(update={"amqp_url": None})
    for user, url in node.worker_urls.items():
        write_private(user_file(settings, user), url)
    write_private(management_file(settings), node.address.viewer_url)
    write_private(broker_file(settings), node.amqp_url)
    return settings


def template_for(user: str, targets: Sequence[str] = ()) -> Permissions:
    """Permissions of a worker, or of a client where the user is called as an identity."""
    commanded = sorted({*targets_of(user), *targets})
    if client_identity(user) is not None:
        return of_client(user, commanded, ("#",) if is_operator_by(user, None) else ())
    return of_worker(user, commanded, _HEARD.get(user, ()), rungs_of(RUNGS))


def admin_of(node: PrivateNode) -> Management:
    """The management API as the administrator."""
    address = node.address
    return Management(str(URL(address.management_url).with_user(address.username).with_password(address.password)))


async def _provide(node: PrivateNode, users: Mapping[str, Permissions]) -> None:
    topology = backbone(rungs_of(RUNGS))
    for worker in users:
        if "." not in worker:
            topology += of_service(worker, takes_commands=True, event_keys=("evt.greeting.greeted",))
    await apply(node.amqp_url, topology)
    granted = [definitions_of(user, permissions) for user, permissions in users.items()]
    await admin_of(node).import_definitions(merged(granted))
