"""Long-term memory by hand."""

import typer

from mindbus_fleet.cli.episode_changing import anchor, pack, tune, unpack
from mindbus_fleet.cli.episode_import import import_
from mindbus_fleet.cli.episode_looking import list_, search, show, stats

app = typer.Typer(no_args_is_help=True, help="What was said long ago: take in, list, find, unpack, anchor, pack.")

app.command("import")(import_)
app.command("ls")(list_)
for command in (show, search, unpack, anchor, pack, stats, tune):
    app.command()(command)
