"""The command `queues`: depth and consumers of every queue."""

from typing import Annotated

import typer

from mindbus.bus.connection import find_broker
from mindbus.cli.console import show_json, show_table
from mindbus.cli.environment import read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import run
from mindbus.management import QueueState, open_management

app = typer.Typer()


@app.command()
def queues(
    prefix: Annotated[str, typer.Option("--prefix", help="Only queues whose names start so.")] = "mb.",
    as_json: Json = False,
) -> None:
    """List the queues with their depth and consumers.

    [bold]Examples[/bold]

    mindbus queues

    mindbus queues --prefix mb.q. --json
    """
    found = run(_queues(prefix))
    if as_json:
        show_json([_plain(queue) for queue in found])
        return
    show_table(
        ("queue", "depth", "ready", "unacked", "consumers", "state"),
        ((q.name, q.depth, q.ready, q.unacked, q.consumers, q.state) for q in found),
    )


async def _queues(prefix: str) -> list[QueueState]:
    settings = read_settings()
    async with open_management(settings, find_broker(settings)) as management:
        return await management.queues(prefix)


def _plain(queue: QueueState) -> dict[str, object]:
    return {
        "name": queue.name,
        "depth": queue.depth,
        "ready": queue.ready,
        "unacked": queue.unacked,
        "consumers": queue.consumers,
        "state": queue.state,
    }
