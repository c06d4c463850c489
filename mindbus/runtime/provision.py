"""Provision of workers on a broker by its administrator: users, permissions, exchanges and queues."""

import asyncio
import inspect
import secrets
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

from bus_schema.delegation import is_operator_by, targets_of
from bus_schema.messages import Command
from mindbus.broker_url import with_login
from mindbus.bus.connection import open_broker
from mindbus.bus.permissions import (
    Permissions,
    definitions_of,
    merged,
    of_client,
    of_worker,
    topology_definitions,
    user_definition,
)
from mindbus.bus.topology import Topology, backbone, of_service, rungs_of
from mindbus.bus.transport import Transport
from mindbus.bus.worker import Worker
from mindbus.errors import BusUnavailable
from mindbus.files.disk import write_private
from mindbus.logs import logger
from mindbus.management import Management, ManagementUnavailable, management_url, open_management
from mindbus.run_dir import broker_file, user_file
from mindbus.settings import Settings, parse_partitions
from mindbus.tenants import login_of, name_of

T = TypeVar("T")
_AT_ONCE = 8
# As long as a node takes to be started anew on a busy machine.
_BACK_WITHIN_S = 60.0
_AGAIN_S = 0.5


@dataclass(frozen=True)
class Administrator:
    """The administrator of a broker: its AMQP address and its management API, with the login."""

    amqp_url: str
    management: Management

    @classmethod
    def of_private_node(cls, settings: Settings) -> Self | None:
        """That of the private node that runs on this data folder, which is for its owner's eyes."""
        address = broker_file(settings)
        if settings.amqp_url is not None or not address.exists():
            return None
        return cls.at(address.read_text().strip(), settings)

    @classmethod
    def at(cls, amqp_url: str, settings: Settings) -> Self:
        """The one whose login an AMQP address has."""
        login = urlsplit(amqp_url)
        user, password = unquote(login.username or "guest"), unquote(login.password or "guest")
        vhost = unquote(login.path.removeprefix("/")) or "/"
        return cls(amqp_url, Management(with_login(management_url(settings, amqp_url), user, password), vhost))

    def url_of(self, user: str, password: str) -> str:
        """The address with the login of another user."""
        return with_login(self.amqp_url, user, password)

    async def add_users(self, names: Iterable[str], settings: Settings) -> list[str]:
        """Make users of those workers that have none, keep their addresses in files; the names of the new ones.

        On a private node, a user whose address is not known any more gets a new password.
        """
        known = set(await self.management.users()) if settings.amqp_url else set[str]()
        logins = {name: login_of(settings.tenant, name) for name in names}
        without_file = [name for name in logins if not user_file(settings, name).exists()]
        unknown = [name for name in without_file if logins[name] not in known]
        new = {name: secrets.token_urlsafe(24) for name in unknown}
        if new:
            users = [user_definition(logins[name], password) for name, password in new.items()]
            await self.management.import_definitions({"users": users})
        for name, password in new.items():
            write_private(user_file(settings, name), self.url_of(logins[name], password))
        return unknown

    async def provide(self, found: Sequence[Worker], settings: Settings) -> None:
        """Make the exchanges and queues of workers, and let each have what the template gives it, no more."""
        shared = shared_by_all(settings)
        transport = open_broker(self.amqp_url, "mindbus administrator", settings.publish_timeout_s)
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def declare(topology: Topology) -> None:
            async with at_once:
                await self._declare(transport, topology)

        try:
            # Before the queues: none is to be without its policy.
            policies = topology_definitions(Topology(policies=shared.policies), self.management.vhost)
            await self.management.import_definitions({"policies": policies["policies"]})
            await declare(shared)
            await asyncio.gather(*(declare(queues_of(worker, settings)) for worker in found))
        finally:
            await transport.close()
        vhost = self.management.vhost
        granted = [
            definitions_of(login_of(settings.tenant, worker.name), permissions_of(worker, settings), vhost)
            for worker in found
        ]
        await self.management.import_definitions(merged(granted))

    async def _declare(self, transport: Transport, topology: Topology) -> None:
        """Declare it; queues that another version has made are made anew, with their messages."""
        try:
            await transport.declare(topology)
        except BusUnavailable as error:
            if "PRECONDITION_FAILED" not in str(error):
                raise
            # Imported here: the library that it needs is for administration alone.
            from mindbus.bus.queue_moves import StillInUse
            from mindbus.bus.topology_admin import migrate

            older = await _declare_the_rest(transport, topology)
            try:
                moved = await migrate(self.amqp_url, self.management, topology)
            except StillInUse as in_use:
                logger().warning("made by another version, used as it is", queues=older, reason=str(in_use))
            else:
                logger().info("brought up to date with their messages", queues=moved)


async def limit_deliveries(settings: Settings) -> None:
    """Set the policy that bounds deliveries where participants share a login, which may or may not be allowed to."""
    management = open_management(settings, settings.amqp_url or "")
    for policy in backbone(()).policies:
        try:
            await management.put_policy(policy.name, policy.as_json())
        except ManagementUnavailable as error:
            logger().info("policy not set; `mindbus topology apply` does it", policy=policy.name, reason=str(error))


async def when_up(work: Callable[[], Awaitable[T]]) -> T:
    """Do what needs the broker; one that is just starting is waited for.

    Raises BusUnavailable, ManagementUnavailable.
    """
    deadline = asyncio.get_running_loop().time() + _BACK_WITHIN_S
    while True:
        try:
            return await work()
        except (BusUnavailable, ManagementUnavailable) as error:
            if asyncio.get_running_loop().time() > deadline:
                raise
            logger().warning("the broker is not there yet", reason=str(error))
            await asyncio.sleep(_AGAIN_S)


async def _declare_the_rest(transport: Transport, topology: Topology) -> list[str]:
    """Declare each part for itself; names of the parts that were made with other arguments."""
    older = []
    parts = [
        *(Topology(exchanges=(each,)) for each in topology.exchanges),
        *(Topology(queues=(each,)) for each in topology.queues),
        *(Topology(bindings=(each,)) for each in topology.bindings),
    ]
    for part in parts:
        try:
            await transport.declare(part)
        except BusUnavailable as error:
            if "PRECONDITION_FAILED" not in str(error):
                raise
            older += [*(each.name for each in part.exchanges), *(each.name for each in part.queues)]
    return older


def kept_on(nodes: int | None, topology: Topology) -> Topology:
    """Keep each quorum queue on so many nodes of a cluster; None: on RabbitMQ's own number, three."""
    if nodes is None:
        return topology
    size = {"x-quorum-initial-group-size": nodes}
    return replace(
        topology,
        queues=tuple(
            replace(queue, arguments=queue.arguments | size) if "x-queue-type" in queue.arguments else queue
            for queue in topology.queues
        ),
    )


def shared_by_all(settings: Settings) -> Topology:
    """Exchanges and queues that every worker uses, with the policies."""
    return kept_on(settings.queue_nodes, backbone(rungs_of(settings.retry_rungs)))


def queues_of(worker: Worker, settings: Settings) -> Topology:
    """Exchanges and queues of a worker alone."""
    routes = worker.routes
    own = of_service(
        worker.name,
        takes_commands=bool(routes.commands),
        event_keys=routes.event_keys,
        is_ordered=worker.is_ordered,
        partitions=worker.partitions,
    )
    return kept_on(settings.queue_nodes, own)


def permissions_of(worker: Worker, settings: Settings) -> Permissions:
    """The template for a worker: it commands whom the policy table, its handlers' results and `sends_to` name."""
    readers = tuple(filter(None, map(str.strip, settings.readers.split(","))))
    targets = {*targets_of(worker.name, readers), *_returned_to(worker), *worker.sends_to}
    heard = (*worker.subscribes_to, *(key.removeprefix("evt.") for key in worker.routes.event_keys))
    return of_worker(worker.name, sorted(targets), heard, rungs_of(settings.retry_rungs))


def client_definitions(login: str, password: str, vhost: str = "/") -> dict[str, Any]:
    """The user of a person or an agent outside the fleet, with the template's permissions; operators hear all."""
    name = name_of(login)
    heard = ("#",) if is_operator_by(name, None) else ()
    permissions = of_client(name, sorted(targets_of(name)), heard)
    return merged([{"users": [user_definition(login, password)]}, definitions_of(login, permissions, vhost)])


def _returned_to(worker: Worker) -> Iterator[str]:
    """Services of the commands that its handlers return, by their annotations."""
    routes = worker.routes
    for route in (*routes.by_type.values(), *routes.by_topic.values(), *routes.tasks):
        for part in _parts(typing.get_type_hints(route.handler(worker)).get("return")):
            if inspect.isclass(part) and issubclass(part, Command) and (service := part.wire.service):
                yield service


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in typing.get_args(hint):
        yield from _parts(part)


class NotPartitionable(ValueError):
    """The commands of this worker cannot be spread over several queues; take it out of MINDBUS_PARTITIONS."""


class NoSuchPartition(ValueError):
    """MINDBUS_PARTITION is the number of one of the queues, from 0, less than their number in MINDBUS_PARTITIONS."""


def partitions_of(worker: Worker, settings: Settings) -> int:
    """Number of queues of a worker's commands. Raises NotPartitionable, NoSuchPartition."""
    count = parse_partitions(settings.partitions).get(worker.name, 1)
    if count > 1 and not (worker.is_partitionable and worker.is_ordered):
        raise NotPartitionable(f"{NotPartitionable.__doc__} ({worker.name})")
    if count > 1 and settings.partition is not None and settings.partition >= count:
        raise NoSuchPartition(f"{NoSuchPartition.__doc__} ({worker.name}={count})")
    return count
