"""The agents of the storage benchmark: the SDK as shipped, orders on standard input."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated

from pydantic import Field, TypeAdapter

from benchmarks.storage_children import READY
from benchmarks.storage_tasks import Large, Small, Took, TookEach
from bus_schema.artifacts import Manifest
from bus_schema.storage import Registration
from config.settings import FleetSettings
from mindbus import connect
from mindbus.logs import configure_logs
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.sdk.errors import ArtifactRejected
from mindbus.sdk.storage_link import StorageClient
from mindbus.sdk.transfers import NewArtifact, Put

TRACE = "bench"
_ORDER: TypeAdapter[Large | Small] = TypeAdapter(Annotated[Large | Small, Field(discriminator="do")])


class NotRegistered(Exception):
    """An artifact waits in the buffer where it should be registered: there is nothing to measure."""


class TimedStorage(StorageClient):
    """Writes down how long each registration took."""

    took_ms: list[float]

    async def register(self, manifest: Manifest) -> Registration:
        began = time.perf_counter()
        registration = await super().register(manifest)
        self.took_ms.append((time.perf_counter() - began) * 1000)
        return registration


async def large(artifacts: Artifacts, order: Large) -> Took:
    began = time.perf_counter()
    if order.do == "put":
        put = await artifacts.put(order.path, artifact_type="recording", trace=TRACE, artifact_id=f"art_{order.name}")
        sha256 = _registered(put).ref.sha256
    else:
        sha256 = (await artifacts.save(f"art_{order.name}", order.path, trace=TRACE)).sha256
    return Took(seconds=time.perf_counter() - began, sha256=sha256)


async def small(settings: FleetSettings, order: Small) -> TookEach:
    took = TookEach(seconds=0, put_ms=[], register_ms=[])
    async with AsyncExitStack() as stack:
        agents = [
            await stack.enter_async_context(_agent(settings, f"agent.bench_{number}", took.register_ms))
            for number in range(order.agents)
        ]
        began = time.perf_counter()
        share = order.artifacts // order.agents
        await asyncio.gather(*(_put_each(agent, share, order, took.put_ms) for agent in agents))
        took.seconds, took.artifacts = time.perf_counter() - began, share * order.agents
    return took


async def _put_each(artifacts: Artifacts, count: int, order: Small, took_ms: list[float]) -> None:
    for _ in range(0, count, order.at_once):
        contents = [os.urandom(order.content_bytes) for _ in range(order.at_once)]
        began = time.perf_counter()
        if order.at_once == 1:
            _registered(await artifacts.put(contents[0], artifact_type="note", trace=TRACE))
        else:
            new: list[NewArtifact] = [{"source": each, "artifact_type": "note", "trace": TRACE} for each in contents]
            for put in await artifacts.put_all(new):
                _registered(put)
        took_ms.append((time.perf_counter() - began) * 1000)


@asynccontextmanager
async def _agent(settings: FleetSettings, identity: str, took_ms: list[float]) -> AsyncIterator[Artifacts]:
    async with connect(identity, settings=settings) as bus:
        storage = TimedStorage(bus)
        storage.took_ms = took_ms
        async with open_artifacts(bus, settings, storage=storage) as artifacts:
            yield artifacts


def _registered(put: Put | ArtifactRejected) -> Put:
    if isinstance(put, ArtifactRejected):
        raise put
    if put.is_pending:
        raise NotRegistered(NotRegistered.__doc__)
    return put


async def play(settings: FleetSettings) -> None:
    async with _agent(settings, "agent.bench", []) as artifacts:
        print(READY, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = _ORDER.validate_json(line)
            took = await (small(settings, order) if isinstance(order, Small) else large(artifacts, order))
            print(took.model_dump_json(), flush=True)


if __name__ == "__main__":
    configure_logs("ERROR", "console")
    asyncio.run(play(FleetSettings()))
