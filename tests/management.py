"""A small client of RabbitMQ's management API: what an operator sees, what a test must arrange."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx


@dataclass(frozen=True)
class Queue:
    """As of about a second ago: the broker counts once per second."""

    name: str
    kind: str
    depth: int
    ready: int
    unacked: int
    consumers: int
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Connection:
    name: str
    user: str
    vhost: str
    client_name: str


@dataclass(frozen=True)
class Got:
    """A message taken off a queue."""

    body: str
    routing_key: str
    redelivered: bool
    headers: dict[str, Any]
    properties: dict[str, Any]


class Management:
    def __init__(self, url: str, username: str, password: str) -> None:
        # No certificates and no proxy from the environment: the broker is plain HTTP close by, and loading the
        # certificates would take longer than all the requests of a test.
        self._http = httpx.AsyncClient(
            base_url=url, auth=(username, password), verify=False, trust_env=False, timeout=30
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def overview(self) -> dict[str, Any]:
        """Version, totals, listeners."""
        found: dict[str, Any] = await self._get("/api/overview")
        return found

    async def running_nodes(self) -> set[str]:
        """Names of the nodes of its cluster that run, as the node that answers sees it."""
        return {node["name"] for node in await self._get("/api/nodes?columns=name,running") if node["running"]}

    async def create_vhost(self, vhost: str) -> None:
        """The user gets all rights in it."""
        await self._call("PUT", f"/api/vhosts/{_part(vhost)}")

    async def delete_vhost(self, vhost: str) -> None:
        """With everything in it; its connections are closed."""
        await self._call("DELETE", f"/api/vhosts/{_part(vhost)}")

    async def trace_vhost(self, vhost: str, *, on: bool) -> None:
        """Copy every message of the vhost to `amq.rabbitmq.trace`, or no longer."""
        await self._call("PUT", f"/api/vhosts/{_part(vhost)}", json={"tracing": on})

    async def limit_deliveries(self, limit: int, vhost: str = "/") -> None:
        """In the place of MindBus's own limit, which takes more time to reach."""
        policy = {
            "pattern": r"^mb\.q\.[^.]+(\.events)?$",
            "definition": {"delivery-limit": limit},
            "apply-to": "queues",
        }
        await self._call("PUT", f"/api/policies/{_part(vhost)}/of-a-test", json={**policy, "priority": 1})

    async def vhosts(self) -> list[str]:
        """Their names."""
        return [vhost["name"] for vhost in await self._get("/api/vhosts")]

    async def queues(self, vhost: str = "/") -> dict[str, Queue]:
        """By name."""
        return {queue["name"]: _queue(queue) for queue in await self._get(f"/api/queues/{_part(vhost)}")}

    async def queue(self, name: str, vhost: str = "/") -> Queue:
        """Raises httpx.HTTPStatusError where there is none."""
        return _queue(await self._get(f"/api/queues/{_part(vhost)}/{_part(name)}"))

    async def delete_queue(self, name: str, vhost: str = "/") -> None:
        """Whether or not it is empty or used."""
        await self._call("DELETE", f"/api/queues/{_part(vhost)}/{_part(name)}")

    async def purge_queue(self, name: str, vhost: str = "/") -> None:
        """Drop what is ready."""
        await self._call("DELETE", f"/api/queues/{_part(vhost)}/{_part(name)}/contents")

    async def exchanges(self, vhost: str = "/") -> list[dict[str, Any]]:
        """As the API gives them."""
        found: list[dict[str, Any]] = await self._get(f"/api/exchanges/{_part(vhost)}")
        return found

    async def bindings(self, vhost: str = "/") -> list[dict[str, Any]]:
        """As the API gives them."""
        found: list[dict[str, Any]] = await self._get(f"/api/bindings/{_part(vhost)}")
        return found

    async def get_messages(self, queue: str, vhost: str = "/", count: int = 10, *, keep: bool = False) -> list[Got]:
        """Take messages off, or look at them: those kept count as redelivered afterwards."""
        answer = await self._call(
            "POST",
            f"/api/queues/{_part(vhost)}/{_part(queue)}/get",
            json={
                "count": count,
                "ackmode": "ack_requeue_true" if keep else "ack_requeue_false",
                "encoding": "auto",
            },
        )
        return [_got(message) for message in answer.json()]

    async def connections(self, vhost: str | None = None) -> list[Connection]:
        """Those of all vhosts, or of one."""
        found = [_connection(connection) for connection in await self._get("/api/connections")]
        return [connection for connection in found if vhost is None or connection.vhost == vhost]

    async def close_connection(self, name: str, reason: str = "closed by a test") -> None:
        """As an operator would in the UI."""
        await self._call("DELETE", f"/api/connections/{_part(name)}", headers={"X-Reason": reason})

    async def _get(self, path: str) -> Any:
        return (await self._call("GET", path)).json()

    async def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = await self._http.request(method, path, **options)
        return response.raise_for_status()


def _part(name: str) -> str:
    return quote(name, safe="")


def _queue(found: dict[str, Any]) -> Queue:
    return Queue(
        name=found["name"],
        kind=found.get("type", "classic"),
        # Missing until the broker has counted for the first time.
        depth=found.get("messages", 0),
        ready=found.get("messages_ready", 0),
        unacked=found.get("messages_unacknowledged", 0),
        consumers=found.get("consumers", 0),
        arguments=found.get("arguments", {}),
    )


def _connection(found: dict[str, Any]) -> Connection:
    properties = found.get("client_properties", {})
    return Connection(
        name=found["name"],
        user=found.get("user", ""),
        vhost=found.get("vhost", ""),
        client_name=properties.get("connection_name", "") if isinstance(properties, dict) else "",
    )


def _got(found: dict[str, Any]) -> Got:
    properties = found["properties"] or {}
    return Got(
        body=found["payload"],
        routing_key=found["routing_key"],
        redelivered=found["redelivered"],
        headers=properties.get("headers", {}),
        properties=properties,
    )
