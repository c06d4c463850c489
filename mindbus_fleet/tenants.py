"""Tenants of a fleet: virtual host, limits, databases and folder of each are made, changed and removed here."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import psycopg
from psycopg import sql
from sqlalchemy.engine import URL

from bus_schema.codes import Code
from config.settings import FleetSettings
from mindbus.bus.connection import find_broker
from mindbus.bus.topology_admin import user_of
from mindbus.errors import MindBusError
from mindbus.files.disk import keep_private, write_private
from mindbus.files.store import open_files
from mindbus.management import Management
from mindbus.run_dir import broker_file
from mindbus.runtime.provision import Administrator
from mindbus.tenants import QUOTAS, TENANT_NAME, folder_of, login_of, tenants_of, with_vhost
from mindbus_fleet.backup.postgresql import databases_of
from mindbus_fleet.node.address import VIEWER
from mindbus_fleet.supervision.run_folder import RunFolder

# The broker's own names for what it limits.
_QUEUES, _CONNECTIONS = "max-queues", "max-connections"


class InvalidTenant(MindBusError, code=Code.INVALID):
    """A tenant's name is 1 to 31 lower-case Latin letters, digits and hyphens, starting with a letter."""


class NoSuchTenant(MindBusError, code=Code.NOT_FOUND):
    """There is no such tenant; `mindbus tenants ls` lists them."""


class TenantExists(MindBusError, code=Code.CONFLICT):
    """This tenant exists already; `mindbus tenants set` changes its quotas."""


class TenantRuns(MindBusError, code=Code.CONFLICT):
    """This tenant's fleet is running: stop it first, with `mindbus down` and its MINDBUS_TENANT."""


class NoTenantDatabase(MindBusError, code=Code.UNAVAILABLE):
    """The tenant's database cannot be created or dropped: give the host's login the right, or do it yourself."""


@dataclass(frozen=True)
class Quotas:
    """Bounds of what a tenant may use; None: as much as there is, in `changed` as it was."""

    queues: int | None = None
    connections: int | None = None
    artifact_bytes: int | None = None
    tokens_per_day: int | None = None

    def changed(self, to: Self) -> Self:
        """These with those of another that say something; 0 lifts a quota."""
        given = {name: value for name, value in vars(to).items() if value is not None}
        return type(self)(**{name: value or None for name, value in (vars(self) | given).items()})

    @property
    def settings(self) -> dict[str, int]:
        """As settings of the tenant's workers; the broker sees to the others."""
        named = {"quota_bytes": self.artifact_bytes, "quota_tokens_per_day": self.tokens_per_day}
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True)
class Tenant:
    """One tenant as it is now; `queues` are those that it has."""

    name: str
    quotas: Quotas
    queues: int
    is_running: bool


class TenantHost:
    """The tenants of the fleet whose settings these are."""

    def __init__(self, settings: FleetSettings) -> None:
        """Raises NoBroker."""
        self._settings = settings
        self._admin = Administrator.at(find_broker(settings), settings)

    async def add(self, name: str, quotas: Quotas) -> Tenant:
        """Raises InvalidTenant, TenantExists, NoTenantDatabase, ManagementUnavailable."""
        if not re.fullmatch(TENANT_NAME, name):
            raise InvalidTenant
        if name in tenants_of(self._settings.data_dir):
            raise TenantExists
        own = self._of(name)
        await self._admin.management.import_definitions(self._definitions(name))
        for database in databases_of(own).values():
            _on_server(database, self._settings, _make)
        keep_private(own.data_dir.parent)
        keep_private(own.data_dir)
        return await self._limit(name, quotas)

    async def change(self, name: str, quotas: Quotas) -> Tenant:
        """Raises NoSuchTenant, ManagementUnavailable."""
        self._require(name)
        return await self._limit(name, (await self._quotas(name)).changed(quotas))

    async def all(self) -> list[Tenant]:
        """Raises ManagementUnavailable."""
        return [await self.show(name) for name in tenants_of(self._settings.data_dir)]

    async def show(self, name: str) -> Tenant:
        """Raises NoSuchTenant, ManagementUnavailable."""
        self._require(name)
        management = await self._vhost(name)
        queues = await management.queues() if management else []
        is_running = RunFolder(self._of(name)).is_taken()
        return Tenant(name, await self._quotas(name), len(queues), is_running)

    async def remove(self, name: str) -> None:
        """Remove all that the tenant has, for good. Raises NoSuchTenant, TenantRuns, ManagementUnavailable."""
        self._require(name)
        own = self._of(name)
        if RunFolder(own).is_taken():
            raise TenantRuns
        # The folder last: what fails half-way can be done again.
        if management := await self._vhost(name):
            await management.delete_vhost()
        for user in await self._admin.management.users():
            if user.startswith(login_of(name, "")):
                await self._admin.management.delete_user(user)
        for database in databases_of(own).values():
            _on_server(database, self._settings, _drop)
        files = open_files(own)
        if files.local_root is None:
            with suppress(FileNotFoundError):
                files.fs.rm(own.files_url.partition("://")[2], recursive=True)
        if own.qdrant_url is not None:
            await _drop_collections(own.qdrant_url, own.qdrant_api_key, f"mindbus-{name}-glm-")
        shutil.rmtree(own.data_dir)

    def _of(self, name: str) -> FleetSettings:
        """The settings of a tenant."""
        return type(self._settings).model_validate(self._settings.model_dump(exclude_unset=True) | {"tenant": name})

    def _require(self, name: str) -> None:
        if name not in tenants_of(self._settings.data_dir):
            raise NoSuchTenant(f"{NoSuchTenant.__doc__} ({name})")

    def _management(self, name: str) -> Management:
        """The management API of the tenant's virtual host, with the administrator's login."""
        return Administrator.at(with_vhost(self._admin.amqp_url, name), self._settings).management

    async def _vhost(self, name: str) -> Management | None:
        """The management of the tenant's virtual host; None where somebody has removed that."""
        return self._management(name) if name in await self._admin.management.vhosts() else None

    def _definitions(self, name: str) -> Mapping[str, Any]:
        """The virtual host, which the administrator may use, and whoever may look at the host's own may look at."""
        users = {user_of(self._admin.amqp_url): ".*"}
        if self._settings.amqp_url is None and broker_file(self._settings).exists():
            users[VIEWER] = "^$"
        granted = [
            {"user": user, "vhost": name, "configure": names, "write": names, "read": names}
            for user, names in users.items()
        ]
        return {"vhosts": [{"name": name, "metadata": {"description": "tenant of MindBus"}}], "permissions": granted}

    async def _limit(self, name: str, quotas: Quotas) -> Tenant:
        management = self._management(name)
        await management.set_limit(_QUEUES, quotas.queues)
        await management.set_limit(_CONNECTIONS, quotas.connections)
        file = folder_of(self._settings.data_dir, name) / QUOTAS
        write_private(file, json.dumps(quotas.settings, indent=2) + "\n")
        return await self.show(name)

    async def _quotas(self, name: str) -> Quotas:
        management, own = await self._vhost(name), self._of(name)
        limits = await management.limits() if management else {}
        return Quotas(
            queues=limits.get(_QUEUES),
            connections=limits.get(_CONNECTIONS),
            artifact_bytes=own.quota_bytes or None,
            tokens_per_day=own.quota_tokens_per_day or None,
        )


async def _drop_collections(url: str, api_key: str | None, prefix: str) -> None:
    """Delete the collections that are called by the prefix and the digest of a model."""
    # Imported here: it takes a second.
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(url=url, api_key=api_key, check_compatibility=False)
    try:
        for each in (await client.get_collections()).collections:
            if re.fullmatch(rf"{prefix}[0-9a-f]+", each.name):
                await client.delete_collection(each.name)
    finally:
        await client.close()


def _on_server(database: URL, host: FleetSettings, work: Callable[[psycopg.Connection, str], None]) -> None:
    """Work on a database of the tenant, from the host's own on the same server. Raises NoTenantDatabase."""
    there = next(
        each for each in databases_of(host).values() if (each.host, each.port) == (database.host, database.port)
    )
    address = there.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(address, autocommit=True) as connection:
            work(connection, str(database.database))
    except psycopg.Error as error:
        raise NoTenantDatabase(f"{NoTenantDatabase.__doc__} ({database.database}: {error})") from error


def _make(connection: psycopg.Connection, name: str) -> None:
    if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _drop(connection: psycopg.Connection, name: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
