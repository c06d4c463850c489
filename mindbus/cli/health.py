"""The command `health`: the probe of one worker."""

from typing import Annotated

import typer

from mindbus.cli.console import show_result
from mindbus.cli.errors import read_settings
from mindbus.cli.options import Json
from mindbus.health import HealthFolder

app = typer.Typer()


@app.command()
def health(
    name: Annotated[str, typer.Argument(help="The worker to look at.")],
    as_json: Json = False,
) -> None:
    """Exit 0 when a worker of that name is ready, or standing by, on this host, else 1 with the reason.

    [bold]Example[/bold]

    mindbus health storage
    """
    worker = HealthFolder(read_settings()).require(name)
    told = f"{worker.name} is {worker.state.replace('_', ' ')} (process {worker.pid})"
    show_result(worker.as_json(), f"{told}; {worker.note}" if worker.note else told, as_json=as_json)
