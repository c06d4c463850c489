"""Shared memory by hand."""

import typer

from mindbus_fleet.cli.memory_changing import add, rm, update
from mindbus_fleet.cli.memory_import import import_
from mindbus_fleet.cli.memory_looking import get, search, stats, watch

app = typer.Typer(no_args_is_help=True, help="What agents know together: add, search, get, change, watch.")

for command in (add, search, get, update, rm, watch, stats):
    app.command()(command)
app.command("import")(import_)
