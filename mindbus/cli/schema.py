"""The commands `schema`: JSON Schemas, AsyncAPI and the reference as files."""

from pathlib import Path
from typing import Annotated

import typer

from mindbus.cli.console import show_result
from mindbus.cli.errors import CommandError
from mindbus.cli.options import Json
from mindbus.reference import differences
from mindbus.reference import export as write_files

app = typer.Typer(no_args_is_help=True, help="Contracts for other languages.")

_FOLDER = Path("docs/reference")


@app.command()
def export(
    folder: Annotated[Path, typer.Option("--output", "-o", help="The folder.")] = _FOLDER,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if the files are out of date.")] = False,
    as_json: Json = False,
) -> None:
    """Write JSON Schemas, an AsyncAPI 3.0 document, and the reference pages that are made from code.

    [bold]Examples[/bold]

    mindbus schema export

    mindbus schema export --check
    """
    if check:
        outdated = differences(folder)
        if outdated:
            raise CommandError("; ".join(outdated) + ": run `mindbus schema export`")
        show_result({"up_to_date": True}, f"{folder} is up to date", as_json=as_json)
        return
    written = write_files(folder)
    show_result({"written": [str(file) for file in written]}, f"{len(written)} files in {folder}", as_json=as_json)
