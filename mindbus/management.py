"""RabbitMQ's management API: queues, exchanges, bindings, policies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import httpx

from bus_schema.replies import Code
from mindbus.errors import MindBusError
from mindbus.settings import Settings


class ManagementUnavailable(MindBusError, code=Code.UNAVAILABLE):
    """The management API does not answer: enable the plugin rabbitmq_management, or set MINDBUS_MANAGEMENT_URL."""


@dataclass(frozen=True)
class QueueState:
    """A queue as the UI shows it; `ready` and `unacked` are numbers of messages."""

    name: str
    ready: int
    unacked: int
    consumers: int
    state: str
    arguments: dict[str, Any]

    @property
    def depth(self) -> int:
        return self.ready + self.unacked


class Management:
    """A client of the API; `url` carries the login, `vhost` is the one of the AMQP address."""

    def __init__(self, url: str, vhost: str = "/") -> None:
        parts = urlsplit(url)
        host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        self._client = httpx.AsyncClient(
            base_url=urlunsplit((parts.scheme, host, parts.path.rstrip("/") + "/api", "", "")),
            auth=(unquote(parts.username or "guest"), unquote(parts.password or "guest")),
            timeout=10,
        )
        self._vhost = quote(vhost, safe="")

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._client.aclose()

    async def _get(self, path: str) -> Any:
        try:
            answer = await self._client.get(path)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise ManagementUnavailable(f"{ManagementUnavailable.__doc__} ({error})") from error
        return answer.json()


def open_management(settings: Settings, amqp_url: str) -> Management:
    """The management API that belongs to an AMQP address: as set, as `mindbus up` has left it, or as is usual."""
    vhost = unquote(urlsplit(amqp_url).path.removeprefix("/")) or "/"
    file = management_file(settings)
    if settings.management_url:
        return Management(settings.management_url, vhost)
    if settings.amqp_url is None and file.exists():
        return Management(file.read_text().strip(), vhost)
    parts = urlsplit(amqp_url)
    login = f"{parts.username or 'guest'}:{parts.password or 'guest'}"
    return Management(f"http://{login}@{parts.hostname}:15672", vhost)


def management_file(settings: Settings) -> Path:
    """File in which `mindbus up` keeps the management address of its private broker with the login, mode 0600."""
    return settings.run_dir / "management_url"


def _queue(row: dict[str, Any]) -> QueueState:
    return QueueState(
        name=row["name"],
        # A queue that was declared a moment ago has no statistics yet.
        ready=row.get("messages_ready", 0),
        unacked=row.get("messages_unacknowledged", 0),
        consumers=row.get("consumers", 0),
        state=row.get("state", "unknown"),
        arguments=row.get("arguments", {}),
    )
