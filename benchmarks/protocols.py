"""`python -m benchmarks.protocols` measures calls over HTTP, MCP, A2A and OpenAI's API beside those on the bus.

Gateway and services are processes of their own; each call is made in turn over every protocol, by one caller.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import httpx
import httpx2
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import Client as A2AClient
from a2a.types import Message, Part, Role, SendMessageRequest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from openai import AsyncOpenAI

from benchmarks.servers.workers import workers_of
from bus_schema.dialogue import Invoke, conversation_trace
from bus_schema.glm import RetrieveKems, StoreKem
from bus_schema.ids import mint
from bus_schema.kem import KemDraft
from bus_schema.kem_query import KemQuery
from config.settings import FleetSettings
from mindbus.accounts import AccessRole, accounts_of
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus.run_dir import gateway_url_file
from mindbus_fleet.node.private import PrivateNode

SERVICES = ("storage", "history", "glm", "lsm", "task_manager", "dialogue")
USER, QUESTION = "anna", "Hello!"
_WARM_UP = 5

Call = Callable[[], Awaitable[object]]


@asynccontextmanager
async def calls(folder: Path) -> AsyncIterator[dict[str, dict[str, Call]]]:
    """Calls by what they do and over which protocol; the first is the bus's own request."""
    async with PrivateNode(folder / "node") as node:
        settings = FleetSettings(
            amqp_url=node.amqp_url,
            data_dir=folder,
            log_level="ERROR",
            gateway_port=0,
            gateway_requests_per_minute=1_000_000,
        )
        token = accounts_of(settings).add(USER, AccessRole.USER)
        signed = {"Authorization": f"Bearer {token}"}
        with workers_of(settings) as workers:
            await workers.start_together(*SERVICES)
            await workers.start("gateway")
            url = gateway_url_file(settings).read_text()
            async with (
                connect(f"user.{USER}", settings=settings) as bus,
                httpx.AsyncClient(base_url=url, headers=signed, timeout=30, trust_env=False) as http,
                httpx2.AsyncClient(headers=signed, timeout=30, trust_env=False) as mcp_http,
                McpClient(streamable_http_client(f"{url}/mcp", http_client=mcp_http)) as mcp,
                AsyncOpenAI(base_url=f"{url}/v1", api_key=token) as openai,
            ):
                card = await A2ACardResolver(http, url).get_agent_card()
                a2a = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card)
                yield await _calls(bus, http, mcp, openai, a2a)


async def _calls(
    bus: Client, http: httpx.AsyncClient, mcp: McpClient, openai: AsyncOpenAI, a2a: A2AClient
) -> dict[str, dict[str, Call]]:
    kem = await bus.request(StoreKem(kem=KemDraft(content="The release is in March.", visibility="private")))
    trace, said = conversation_trace(USER), {"message": QUESTION}

    async def over_http(method: str, path: str, **options: object) -> None:
        (await http.request(method, path, **options)).raise_for_status()  # type: ignore[arg-type]  # as httpx takes them

    async def over_mcp(tool: str, **arguments: object) -> None:
        assert not (await mcp.call_tool(tool, arguments)).is_error

    async def over_a2a() -> None:
        message = Message(message_id=mint("msg"), role=Role.ROLE_USER, parts=[Part(text=QUESTION)])
        async for event in a2a.send_message(SendMessageRequest(message=message)):
            assert event.task.artifacts

    return {
        "a unit is read": {
            "bus": lambda: bus.request(RetrieveKems(query=KemQuery(ids=(kem.id,)), page_size=1)),
            "http": lambda: over_http("GET", f"/api/memory/kems/{kem.id}"),
            "mcp": lambda: over_mcp("memory_get", id=kem.id),
        },
        "the assistant answers": {
            "bus": lambda: bus.request(
                Invoke(user_id=USER, message=QUESTION, message_id=mint("msg")), trace=trace, timeout_s=30
            ),
            "http": lambda: over_http("POST", f"/api/dialogues/{USER}/messages", json=said),
            "mcp": lambda: over_mcp("ask_assistant", **said),
            "openai": lambda: openai.chat.completions.create(
                model="dialogue", messages=[{"role": "user", "content": QUESTION}]
            ),
            "a2a": over_a2a,
        },
    }


async def measure(times: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of each call, and over the bus's own request how much more."""
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with calls(Path(folder)) as by_name:
            for name, protocols in by_name.items():
                took: dict[str, list[float]] = {protocol: [] for protocol in protocols}
                for number in range(times + _WARM_UP):
                    for protocol, call in protocols.items():
                        began = time.perf_counter()
                        await call()
                        if number >= _WARM_UP:
                            took[protocol].append(1000 * (time.perf_counter() - began))
                medians = {protocol: median(each) for protocol, each in took.items()}
                more = {f"{each}_over_bus_ms": medians[each] - medians["bus"] for each in medians if each != "bus"}
                rows[name] = {**{f"{each}_ms": ms for each, ms in medians.items()}, **more}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="calls over each protocol")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    configure_logs("ERROR", "console")
    rows = asyncio.run(measure(arguments.times))
    if arguments.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(
            name, *(f"  {key.removesuffix('_ms').replace('_', ' ')}: {ms:.1f} ms" for key, ms in row.items()), sep="\n"
        )


if __name__ == "__main__":
    main()
