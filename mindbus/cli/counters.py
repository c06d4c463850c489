"""The commands `counters`: counters that agents share."""

from typing import Annotated

import typer

from bus_schema.ids import mint
from bus_schema.swm import GetCounter, IncrementCounter
from mindbus.cli.console import show_result
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import answer_to

app = typer.Typer(no_args_is_help=True, help="Add to counters, read them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the counter, such as drafts.")]


@app.command()
def incr(
    name: Name,
    by: Annotated[int, typer.Option("--by", help="How much to add; less than 0 takes away.")] = 1,
    operation: Annotated[
        str | None, typer.Option("--operation", metavar="ID", help="The same id adds once, however often it is run.")
    ] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Add to a counter.

    [bold]Examples[/bold]

    mindbus counters incr drafts

    mindbus counters incr drafts --by 5 --operation import-7 --json
    """
    operation_id = operation or mint("op")
    _show(name, answer_to(lambda: IncrementCounter(name=name, by=by, operation_id=operation_id), acting).value, as_json)


@app.command()
def get(name: Name, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Read a counter.

    [bold]Examples[/bold]

    mindbus counters get drafts --json
    """
    _show(name, answer_to(lambda: GetCounter(name=name), acting).value, as_json)


def _show(name: str, value: int, as_json: bool) -> None:
    show_result({"value": value}, f"{name} stands at {value}", as_json=as_json)
