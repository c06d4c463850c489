"""A gateway for a test: the worker itself on a real bus, with a client for its URL."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from config.settings import FleetSettings
from gateway.worker import GatewayWorker
from mindbus import Client, Worker, WorkerContext
from tests.brokers import Broker
from tests.fleets import fleet_of, settings_for


@dataclass(frozen=True)
class Served:
    """A gateway at work, a client of it, a client of the bus."""

    worker: GatewayWorker
    http: httpx.AsyncClient
    bus: Client

    async def ok(self, method: str, path: str, **options: Any) -> Any:
        """What it answers."""
        answer = await self.http.request(method, path, **options)
        assert answer.is_success, f"{answer.status_code} {answer.text}"
        return answer.json()

    async def no(self, method: str, path: str, **options: Any) -> tuple[int, str, str]:
        """The problem that it answers with: status, code, detail."""
        answer = await self.http.request(method, path, **options)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        problem = answer.json()
        assert problem["status"] == answer.status_code
        assert problem.keys() == {"type", "title", "status", "code", "detail", "retryable", "errors"}
        return problem["status"], problem["code"], problem["detail"]

    @asynccontextmanager
    async def stream(self, method: str, path: str, **options: Any) -> AsyncIterator[AsyncIterator["Frame"]]:
        """Server-sent events as they come."""
        headers = {"Accept": "text/event-stream"} | options.pop("headers", {})
        async with self.http.stream(method, path, headers=headers, **options) as answer:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8", await answer.aread()
            yield _frames(answer.aiter_lines())


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    event: str
    data: Any
    id: str | None = None


@asynccontextmanager
async def mcp_client(gateway: Served, token: str | None = None) -> AsyncIterator[McpClient]:
    """The official client of MCP."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        McpClient(streamable_http_client(f"{gateway.worker.url}/mcp", http_client=http)) as client,
    ):
        yield client


def gateway_settings(broker: Broker, vhost_url: str, data_dir: Path, **options: Any) -> FleetSettings:
    """FleetSettings with a port of its own that is open to all here, with RabbitMQ's management at hand."""
    options = {"gateway_port": 0, "gateway_access": "open", "management_url": broker.management_login_url} | options
    return settings_for(vhost_url, data_dir, heartbeat_s=0.5, **options)


@asynccontextmanager
async def serving(
    *makers: Callable[[WorkerContext], Worker], settings: FleetSettings, headers: dict[str, str] | None = None
) -> AsyncIterator[Served]:
    """Run a gateway among other workers."""
    async with fleet_of(*makers, GatewayWorker, settings=settings) as fleet:
        worker = fleet[GatewayWorker]
        async with httpx.AsyncClient(base_url=worker.url, headers=headers, timeout=30, trust_env=False) as http:
            yield Served(worker, http, fleet.bus)


async def _frames(lines: AsyncIterator[str]) -> AsyncIterator[Frame]:
    fields: dict[str, str] = {}
    async for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and "data" in fields:
            yield Frame(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))
            fields = {}
