"""The contracts, as files."""

from pathlib import Path
from typing import Annotated

import typer

from bus_schema.export import differences
from bus_schema.export import export as write_files
from mindbus.bus.service import VERSION
from mindbus.cli.console import say, show_json
from mindbus.cli.failures import Failed
from mindbus.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Contracts for other languages.")

_FOLDER = Path("docs/reference")


@app.command()
def export(
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder.")] = _FOLDER,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if the files are out of date.")] = False,
    as_json: Json = False,
) -> None:
    """Write a JSON Schema for every message and an AsyncAPI 3.0 document.

    [bold]Examples[/bold]

    mindbus schema export

    mindbus schema export --check
    """
    if check:
        outdated = differences(folder, VERSION)
        if outdated:
            raise Failed("; ".join(outdated) + ": run `mindbus schema export`")
        _tell({"up_to_date": True}, f"{folder} is up to date", as_json=as_json)
        return
    written = write_files(folder, VERSION)
    _tell({"written": [str(file) for file in written]}, f"{len(written)} files in {folder}", as_json=as_json)


def _tell(document: dict[str, object], sentence: str, *, as_json: bool) -> None:
    if as_json:
        show_json(document)
    else:
        say(sentence)
