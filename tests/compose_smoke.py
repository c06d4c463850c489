"""The containers for real: up, an article that is written while its writers are killed, down.

`make compose-smoke` runs it; it needs a Docker engine.
"""

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from mindbus.testing.wait import ConditionNotMet, until
from tests.compose_stack import Failed, NoEngine, Stack, call
from tests.installed import FLEET
from tests.management import Management, Queue

STEPS = ["research", "ideas", "draft", "critique", "edit", "final"]
WORKERS = list(FLEET)
ENGLISH, RUSSIAN = "config/briefs/en.md", "config/briefs/ru.md"


class Wrong(AssertionError):
    """The stack is not as it should be."""


async def put_to_the_test(name: str, stack: Stack, smoke: Callable[[Stack], Awaitable[None]]) -> int:
    """Exit code: 0 all was well. Whatever happens, nothing of the stack stays."""
    started = time.monotonic()
    try:
        async with stack:
            try:
                await smoke(stack)
            except (Exception, asyncio.CancelledError):
                print(await stack.logs(), file=sys.stderr)
                raise
            async with timed("take it down, volumes and all"):
                await stack.take_down()
    except (NoEngine, Failed, Wrong, ConditionNotMet, TimeoutError) as trouble:
        print(f"{name} FAILED after {time.monotonic() - started:.0f} s\n{trouble}", file=sys.stderr)
        return 1
    print(f"{name} passed in {time.monotonic() - started:.0f} s")
    return 0


async def smoke(stack: Stack) -> None:
    """Bring it up, put it to the test."""
    async with timed("build the image"):
        await stack.compose("build")
    async with timed("up -d --wait: everything healthy"):
        await stack.compose("up", "-d", "--wait", "--wait-timeout", "300")
    async with timed("no worker is root or may become it"):
        await require_harmless(stack)
    async with timed("no container is given a secret of another, or any in its environment"):
        await require_apart(stack)
    async with timed("the gateway lets in who has its token, nobody else"):
        await require_token(stack)
    url = f"http://{await stack.address('rabbitmq', 15672)}"
    admin = urlsplit(
        await stack.compose("run", "--rm", "-T", "--entrypoint", "cat", "cli", "/cli/keys/mindbus_amqp_url")
    )
    async with Management(url, admin.username or "", admin.password or "") as management:
        print(f"         RabbitMQ {(await management.overview())['rabbitmq_version']} at {url}")
        await require_own_logins(management)
        await an_article_while_writers_die(stack, management)
        await an_article_while_storage_dies(stack, management)
        await require_calm(management)


async def require_token(stack: Stack) -> None:
    """The gateway answers on this machine; its token is with whoever may look into its container."""
    token = (await stack.compose("exec", "-T", "gateway", "cat", "/data/gateway_token")).strip()
    url = f"http://{await stack.address('gateway', 8040)}/api/workers"
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        outside = await http.get(url)
        inside = await http.get(url, headers={"Authorization": f"Bearer {token}"})
    if (outside.status_code, inside.status_code) != (401, 200):
        raise Wrong(f"without its token the gateway says {outside.status_code}, with it {inside.status_code}")


async def an_article_while_writers_die(stack: Stack, management: Management) -> None:
    """The only pushkin freezes with its order in hand: others are added, it is killed, the critic dies meanwhile."""
    (frozen,) = await stack.containers("pushkin")
    (critic,) = (await stack.containers("critic")).values()
    await call("docker", "kill", "--signal", "STOP", frozen)
    running = asyncio.create_task(stack.cli("process", "run", "article", "--input", ENGLISH))
    try:
        async with timed("an article: research and ideas done, the writer frozen on its draft"):
            await until(lambda: _has_order(management), 60, "an order for pushkin is in hand")
        async with timed("--scale pushkin=3, then the frozen pushkin killed, the critic's process too"):
            await stack.compose("up", "-d", "--no-recreate", "--no-deps", "--scale", "pushkin=3", "pushkin")
            await call("docker", "kill", "--signal", "KILL", frozen)
            await stack.die(critic)
        async with timed("the article is finished by the others"):
            run = await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await require_complete(stack, run)
    async with timed("the critic is back by itself, healthy"):
        await until(lambda: _is_back(stack, critic["Id"]), 90, "the critic was restarted")


async def an_article_while_storage_dies(stack: Stack, management: Management) -> None:
    """A second storage stands by; the first one dies in the middle of a run in Russian, its brief on standard input."""
    async with timed("--scale storage=2: the second one stands by"):
        await stack.compose("up", "-d", "--no-recreate", "--no-deps", "--wait", "--scale", "storage=2", "storage")
        states = await _states_of_storage(stack)
        if sorted(states.values()) != ["ready", "standing_by"]:
            raise Wrong(f"one storage leads, another stands by; here they are {states}")
    (leader,) = [container for container, state in states.items() if state == "ready"]
    brief = (await asyncio.to_thread(_read, RUSSIAN)).encode()
    # A run takes seconds: its writers are frozen, so that it is still under way when storage dies.
    writers = [each["Id"] for each in (await stack.containers("pushkin")).values() if each["State"]["Running"]]
    await call("docker", "kill", "--signal", "STOP", *writers)
    running = asyncio.create_task(stack.cli("process", "run", "article", "--input", "/dev/stdin", stdin=brief))
    try:
        async with timed("storage is killed in the middle of a run, the other one takes over"):
            await until(lambda: _has_order(management), 60, "an order for pushkin is in hand")
            await stack.die((await stack.containers("storage"))[leader])
            await until(lambda: _has_taken_over(stack, leader), 60, "the standby takes over")
            await call("docker", "kill", "--signal", "CONT", *writers)
        run = await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await require_complete(stack, run)


async def require_complete(stack: Stack, run: dict[str, Any]) -> None:
    """Every step done once, every artifact there; the article's bytes are the ones that were registered."""
    trace = run["run_id"]
    if run["status"] != "completed" or [step["step_id"] for step in run["steps"]] != STEPS:
        raise Wrong(f"{trace} is {run['status']}: {run}")
    print("         " + " -> ".join(f"{step['step_id']} {step['artifact']['sha256'][:8]}" for step in run["steps"]))
    made = await stack.cli("artifacts", "ls", "--trace", trace)
    if len(made) != len(STEPS) + 1:
        raise Wrong(f"{trace} has {len(made)} artifacts instead of a brief and one per step: {made}")
    article = run["result"]
    text = await stack.compose("run", "--rm", "-T", "cli", "artifacts", "get", article["artifact_id"])
    if hashlib.sha256(text.encode()).hexdigest() != article["sha256"]:
        raise Wrong(f"{article['artifact_id']} is not what was registered")


async def require_harmless(stack: Stack) -> None:
    """Workers run without root, capabilities, or a file system that they could write to."""
    for worker in WORKERS:
        for container in (await stack.containers(worker)).values():
            _titles, *processes = (await call("docker", "top", container["Id"], "-eo", "pid,uid")).splitlines()
            users = {process.split()[1] for process in processes}
            host = container["HostConfig"]
            options = host["SecurityOpt"] or []
            locked = host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and "no-new-privileges:true" in options
            if users != {"10001"} or not locked:
                raise Wrong(f"{container['Name']} runs as {users}, locked down: {bool(locked)}")


# What a writer tries with all that its container holds.
INTRUSIONS = """
import asyncio, os, pathlib, sys, urllib.request
import aio_pika, psycopg
keys = {file.name.removeprefix("mindbus_"): file.read_text() for file in pathlib.Path("/data/keys").iterdir()}
assert sorted(keys) == ["amqp_url", "database_url"], sorted(keys)
url = keys["database_url"].replace("+psycopg", "")
with psycopg.connect(url, autocommit=True) as database:
    database.execute("CREATE TABLE critic.own (y int)")
    database.execute("DROP TABLE critic.own")
    for intrusion in ("SELECT * FROM storage.artifacts", "CREATE TABLE public.x (y int)", "CREATE SCHEMA x",
                      "SELECT * FROM pg_authid", "CREATE TABLE orchestrator.x (y int)"):
        try:
            database.execute(intrusion)
        except psycopg.errors.InsufficientPrivilege:
            continue
        sys.exit("done: " + intrusion)
async def take():
    async with await aio_pika.connect(keys["amqp_url"]) as connection, connection.channel() as channel:
        await (await channel.get_queue("mb.q.storage", ensure=False)).get(fail=False)
try:
    asyncio.run(take())
    sys.exit("taken from the queue of storage")
except aio_pika.exceptions.AMQPError as error:
    assert "ACCESS_REFUSED" in str(error), error
try:
    urllib.request.urlopen("http://seaweedfs:8333/mindbus?list-type=2", timeout=10)
    sys.exit("listed the bucket")
except urllib.error.HTTPError as error:
    assert error.code == 403, error
"""


async def require_apart(stack: Stack) -> None:
    """Each container holds its own secrets alone, in files; a writer gets at nothing of others with its own."""
    for container in (await stack.containers()).values():
        variables = dict(variable.split("=", 1) for variable in container["Config"]["Env"] if "=" in variable)
        words = ("_KEY", "_PASSWORD", "_SECRET", "_TOKEN")
        if given := [
            name
            for name, value in variables.items()
            if value and (name.endswith(words) or ("://" in value and "@" in value))
        ]:
            raise Wrong(f"{container['Name']} has {given} in its environment")
    ((critic, _),) = (await stack.containers("critic")).items()
    await call("docker", "exec", critic, "python", "-c", INTRUSIONS)


async def require_own_logins(management: Management) -> None:
    """Each worker has logged in as itself."""
    users = {connection.user for connection in await management.connections()}
    if users != set(WORKERS):
        raise Wrong(f"logged in as {users}")


async def require_calm(management: Management) -> None:
    """Show the queues; nothing is left in them, nothing died."""
    await until(lambda: _is_calm(management), 20, "all queues are empty")
    queues = await management.queues()
    print(f"         {'queue':<28} depth  consumers")
    for name in sorted(name for name in queues if name.startswith("mb.q.")):
        print(f"         {name:<28} {queues[name].depth:>5}  {queues[name].consumers:>9}")


@asynccontextmanager
async def timed(what: str) -> AsyncIterator[None]:
    """Say how long it took, once it worked."""
    started = time.monotonic()
    yield
    print(f"{time.monotonic() - started:6.1f} s  {what}", flush=True)


async def _has_order(management: Management) -> bool:
    return (await management.queue("mb.q.pushkin")).unacked == 1


async def _is_calm(management: Management) -> list[Queue]:
    queues = [queue for name, queue in (await management.queues()).items() if name.startswith("mb.q.")]
    return [] if any(queue.depth for queue in queues) else queues


async def _is_back(stack: Stack, container_id: str) -> bool:
    container = (await stack.containers("critic"))[container_id]
    return bool(container["RestartCount"] == 1 and container["State"]["Health"]["Status"] == "healthy")


async def _states_of_storage(stack: Stack) -> dict[str, str]:
    """Ready or standing by, by container; one that does not answer is neither."""
    states = {}
    for container in await stack.containers("storage"):
        try:
            health = json.loads(await call("docker", "exec", container, "mindbus", "health", "storage", "--json"))
        except Failed:
            continue
        states[container] = health["state"]
    return states


async def _has_taken_over(stack: Stack, before: str) -> bool:
    states = await _states_of_storage(stack)
    return any(state == "ready" for container, state in states.items() if container != before)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as brief:
        return brief.read()


if __name__ == "__main__":
    sys.exit(asyncio.run(put_to_the_test("compose smoke", Stack(), smoke)))
