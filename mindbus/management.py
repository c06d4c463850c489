"""RabbitMQ's management API: queues, exchanges, bindings, policies."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from bus_schema.codes import Code
from mindbus.broker_url import endpoints_of, nodes_of
from mindbus.errors import MindBusError
from mindbus.run_dir import RunSettings, management_file
from mindbus.settings import Settings

_WITHIN_S = 10
_WORDS = 300


class ManagementUnavailable(MindBusError, code=Code.UNAVAILABLE):
    """The management API does not answer: enable the plugin rabbitmq_management, or set MINDBUS_MANAGEMENT_URL."""


class NodeSilent(ManagementUnavailable):
    """The management API of a node does not answer."""


@dataclass(frozen=True)
class QueueState:
    """A queue as the UI shows it; `ready` and `unacked` are numbers of messages.

    `policy` is what its policies say, None while that is unknown. `delivered` counts messages that have been delivered
    for the first time.
    """

    name: str
    ready: int
    unacked: int
    consumers: int
    state: str
    arguments: dict[str, Any]
    policy: dict[str, Any] | None = None
    delivered: int = 0

    @property
    def depth(self) -> int:
        return self.ready + self.unacked


class Management:
    """A client of the API; `url` carries the login, `vhost` is the one of the AMQP address.

    With several hosts it asks the first that answers.
    """

    def __init__(self, url: str, vhost: str = "/") -> None:
        parts = urlsplit(url)
        self._urls = [_api_of(node) for node in nodes_of(url)]
        login = f"{unquote(parts.username or 'guest')}:{unquote(parts.password or 'guest')}"
        self._headers = {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}
        self.vhost, self._vhost = vhost, quote(vhost, safe="")

    async def queues(self, prefix: str = "mb.") -> list[QueueState]:
        rows = await self._get(f"/queues/{self._vhost}")
        return sorted((_queue(row) for row in rows if row["name"].startswith(prefix)), key=lambda queue: queue.name)

    async def exchanges(self) -> list[dict[str, Any]]:
        return [row for row in await self._get(f"/exchanges/{self._vhost}") if row["name"].startswith("mb.")]

    async def bindings(self) -> list[dict[str, Any]]:
        """All bindings between exchanges, queues, exchanges; the implicit ones of the default exchange left out."""
        return [row for row in await self._get(f"/bindings/{self._vhost}") if row["source"]]

    async def overview(self) -> dict[str, Any]:
        """Versions, node name."""
        overview: dict[str, Any] = await self._get("/overview")
        return overview

    async def users(self) -> list[str]:
        """Names of the broker's users; the login is an administrator's."""
        return [row["name"] for row in await self._get("/users")]

    async def import_definitions(self, definitions: Mapping[str, Any]) -> None:
        """Add users, permissions and more, replacing those of the same names; the login is an administrator's."""
        await asyncio.to_thread(self._ask, "POST", "/definitions", definitions)

    async def limits(self) -> dict[str, int]:
        """Limits of the vhost: `max-queues`, `max-connections`."""
        rows = await self._get(f"/vhost-limits/{self._vhost}")
        return {name: value for row in rows for name, value in row["value"].items()}

    async def set_limit(self, name: str, value: int | None) -> None:
        """Set a limit of the vhost, or lift it; the login is an administrator's."""
        path = f"/vhost-limits/{self._vhost}/{name}"
        if value is not None:
            await asyncio.to_thread(self._ask, "PUT", path, {"value": value})
        elif name in await self.limits():
            await asyncio.to_thread(self._ask, "DELETE", path)

    async def vhosts(self) -> set[str]:
        """Names of all vhosts that the login may enter."""
        return {row["name"] for row in await self._get("/vhosts")}

    async def delete_vhost(self) -> None:
        """Remove the vhost with all its queues; the login is an administrator's."""
        await asyncio.to_thread(self._ask, "DELETE", f"/vhosts/{self._vhost}")

    async def delete_user(self, name: str) -> None:
        """Remove a user, whose connections are closed; the login is an administrator's."""
        await asyncio.to_thread(self._ask, "DELETE", f"/users/{quote(name, safe='')}")

    async def policies(self) -> dict[str, dict[str, Any]]:
        """Policies of the vhost by name, as the API gives them."""
        return {row["name"]: row for row in await self._get(f"/policies/{self._vhost}")}

    async def put_policy(self, name: str, policy: Mapping[str, Any]) -> None:
        """Set a policy; the login is a policymaker's."""
        await asyncio.to_thread(self._ask, "PUT", f"/policies/{self._vhost}/{quote(name, safe='')}", policy)

    async def _get(self, path: str) -> Any:
        # The standard library's client: that of httpx takes a quarter of the time of `mindbus queues` to be imported.
        return await asyncio.to_thread(self._ask, "GET", path)

    def _ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        """The answer of the first node that gives one. Raises ManagementUnavailable."""
        body = None if content is None else json.dumps(content).encode()
        headers = self._headers | ({} if content is None else {"Content-Type": "application/json"})
        for url in self._urls[:-1]:
            with suppress(NodeSilent):
                return self._read(Request(url + path, body, headers, method=method))
        return self._read(Request(self._urls[-1] + path, body, headers, method=method))

    def _read(self, request: Request) -> Any:
        try:
            with urlopen(request, timeout=_WITHIN_S) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            said = error.read().decode(errors="replace")[:_WORDS]
            raise ManagementUnavailable(f"The management API of RabbitMQ refuses: {error} {said}") from error
        except (OSError, HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise NodeSilent(f"{ManagementUnavailable.__doc__} ({request.full_url}: {reason})") from error


def open_management(settings: Settings, amqp_url: str) -> Management:
    """The management API that belongs to an AMQP address."""
    vhost = unquote(urlsplit(amqp_url).path.removeprefix("/")) or "/"
    return Management(management_url(settings, amqp_url), vhost)


def management_url(settings: RunSettings, amqp_url: str) -> str:
    """Its URL with the login: as set, as `mindbus up` has left it, or as is usual; without one, that of AMQP."""
    file, amqp = management_file(settings), urlsplit(amqp_url)
    login = f"{amqp.username or 'guest'}:{amqp.password or 'guest'}@"
    if settings.management_url:
        has_login = urlsplit(settings.management_url).username is not None
        return settings.management_url if has_login else settings.management_url.replace("://", f"://{login}", 1)
    if settings.amqp_url is None and file.exists():
        return file.read_text().strip()
    hosts = (f"[{host}]" if ":" in host else host for host, _port in endpoints_of(amqp_url))
    return f"http://{login}{','.join(f'{host}:15672' for host in hosts)}"


def _api_of(node: str) -> str:
    parts = urlsplit(node)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/") + "/api", "", ""))


def _queue(row: dict[str, Any]) -> QueueState:
    counts = row.get("message_stats", {})
    return QueueState(
        name=row["name"],
        delivered=counts.get("deliver_get", 0) - counts.get("redeliver", 0),
        # A queue that was declared a moment ago has no statistics yet.
        ready=row.get("messages_ready", 0),
        unacked=row.get("messages_unacknowledged", 0),
        consumers=row.get("consumers", 0),
        state=row.get("state", "unknown"),
        arguments=row.get("arguments", {}),
        # Some seconds late; an empty list, in some versions, where there is none.
        policy=dict(row["effective_policy_definition"]) if "effective_policy_definition" in row else None,
    )
