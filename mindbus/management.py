"""RabbitMQ's management API: queues, exchanges, bindings, policies."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from bus_schema.codes import Code
from mindbus.errors import MindBusError
from mindbus.run_dir import RunSettings, management_file
from mindbus.settings import Settings

_WITHIN_S = 10
_WORDS = 300


class ManagementUnavailable(MindBusError, code=Code.UNAVAILABLE):
    """The management API does not answer: enable the plugin rabbitmq_management, or set MINDBUS_MANAGEMENT_URL."""


@dataclass(frozen=True)
class QueueState:
    """A queue as the UI shows it; `ready` and `unacked` are numbers of messages.

    `policy` is what its policies say, None while that is unknown.
    """

    name: str
    ready: int
    unacked: int
    consumers: int
    state: str
    arguments: dict[str, Any]
    policy: dict[str, Any] | None = None

    @property
    def depth(self) -> int:
        return self.ready + self.unacked


class Management:
    """A client of the API; `url` carries the login, `vhost` is the one of the AMQP address."""

    def __init__(self, url: str, vhost: str = "/") -> None:
        parts = urlsplit(url)
        host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        self._url = urlunsplit((parts.scheme, host, parts.path.rstrip("/") + "/api", "", ""))
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
        body = json.dumps(definitions).encode()
        headers = self._headers | {"Content-Type": "application/json"}
        await asyncio.to_thread(self._read, Request(f"{self._url}/definitions", body, headers, method="POST"))

    async def delete_user(self, name: str) -> None:
        """Remove a user, whose connections are closed; the login is an administrator's."""
        request = Request(f"{self._url}/users/{quote(name, safe='')}", headers=self._headers, method="DELETE")
        await asyncio.to_thread(self._read, request)

    async def policies(self) -> dict[str, dict[str, Any]]:
        """Policies of the vhost by name, as the API gives them."""
        return {row["name"]: row for row in await self._get(f"/policies/{self._vhost}")}

    async def put_policy(self, name: str, policy: Mapping[str, Any]) -> None:
        """Set a policy; the login is a policymaker's."""
        headers = self._headers | {"Content-Type": "application/json"}
        url = f"{self._url}/policies/{self._vhost}/{quote(name, safe='')}"
        await asyncio.to_thread(self._read, Request(url, json.dumps(policy).encode(), headers, method="PUT"))

    async def _get(self, path: str) -> Any:
        # The standard library's client: that of httpx takes a quarter of the time of `mindbus queues` to be imported.
        return await asyncio.to_thread(self._read, Request(self._url + path, headers=self._headers))

    def _read(self, request: Request) -> Any:
        try:
            with urlopen(request, timeout=_WITHIN_S) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            said = error.read().decode(errors="replace")[:_WORDS]
            raise ManagementUnavailable(f"The management API of RabbitMQ refuses: {error} {said}") from error
        except (OSError, HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise ManagementUnavailable(f"{ManagementUnavailable.__doc__} ({self._url}: {reason})") from error


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
    return f"http://{login}{amqp.hostname}:15672"


def _queue(row: dict[str, Any]) -> QueueState:
    return QueueState(
        name=row["name"],
        # A queue that was declared a moment ago has no statistics yet.
        ready=row.get("messages_ready", 0),
        unacked=row.get("messages_unacknowledged", 0),
        consumers=row.get("consumers", 0),
        state=row.get("state", "unknown"),
        arguments=row.get("arguments", {}),
        # Some seconds late; an empty list, in some versions, where there is none.
        policy=dict(row["effective_policy_definition"]) if "effective_policy_definition" in row else None,
    )
