"""The command `queues`: depth and consumers of every queue."""

from typing import Annotated

import typer

from mindbus.bus.connection import find_broker
from mindbus.cli.console import show_result, show_table
from mindbus.cli.errors import read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import require_reachable, run
from mindbus.management import QueueState, open_management

app = typer.Typer()

_FIELDS = ("name", "depth", "ready", "unacked", "consumers", "state")


@app.command()
def queues(
    prefix: Annotated[str, typer.Option("--prefix", help="Only queues whose names start with this.")] = "mb.",
    as_json: Json = False,
) -> None:
    """List the queues with their depth and consumers.

    [bold]Examples[/bold]

    mindbus queues

    mindbus queues --prefix mb.q. --json
    """
    rows = [[getattr(queue, field) for field in _FIELDS] for queue in run(_queues(prefix))]
    show_result(
        [dict(zip(_FIELDS, row, strict=True)) for row in rows],
        lambda _queues: show_table(("queue", *_FIELDS[1:]), rows),
        as_json=as_json,
    )


async def _queues(prefix: str) -> list[QueueState]:
    settings = read_settings()
    amqp_url = find_broker(settings)
    # Where the broker itself is gone, its management API is not what to mend.
    await require_reachable(amqp_url)
    return await open_management(settings, amqp_url).queues(prefix)
