"""The command line: a table of commands and those that other packages add."""

import difflib
import importlib
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from mindbus.cli.errors import EXPECTED, UsageError, read_settings, report
from mindbus.logs import configure_logs
from mindbus.version import __version__

GROUP = "mindbus.commands"
_FLEET, _WORK, _OPERATION, _MORE = "The fleet", "Work", "Operation", "More"


@dataclass(frozen=True)
class Place:
    """The heading under which help lists a command, and its module; None: it comes with mindbus-fleet."""

    panel: str
    module: str | None = None


# A module is imported when its command is called: `mindbus health` runs as a probe every few seconds.
COMMANDS = {
    "up": Place(_FLEET),
    "down": Place(_FLEET),
    "worker": Place(_FLEET, "mindbus.cli.worker"),
    "dev": Place(_FLEET, "mindbus.cli.dev"),
    "health": Place(_FLEET, "mindbus.cli.health"),
    "demo": Place(_FLEET),
    "send": Place(_WORK, "mindbus.cli.send"),
    "watch": Place(_WORK, "mindbus.cli.watch"),
    "events": Place(_WORK, "mindbus.cli.events"),
    "artifacts": Place(_WORK, "mindbus.cli.artifacts"),
    "process": Place(_WORK),
    "chat": Place(_WORK, "mindbus.cli.chat"),
    "dialogues": Place(_WORK, "mindbus.cli.dialogues"),
    "sim": Place(_WORK),
    "memory": Place(_WORK),
    "episodes": Place(_WORK),
    "history": Place(_WORK, "mindbus.cli.history"),
    "locks": Place(_WORK, "mindbus.cli.locks"),
    "counters": Place(_WORK, "mindbus.cli.counters"),
    "tasks": Place(_WORK, "mindbus.cli.tasks"),
    "users": Place(_WORK, "mindbus.cli.user_records"),
    "user": Place(_OPERATION, "mindbus.cli.users"),
    "queues": Place(_OPERATION, "mindbus.cli.queues"),
    "dlq": Place(_OPERATION, "mindbus.cli.dead_letters"),
    "storage": Place(_OPERATION, "mindbus.cli.storage"),
    "glm": Place(_OPERATION),
    "schema": Place(_OPERATION, "mindbus.cli.schema"),
    "topology": Place(_OPERATION),
    "doctor": Place(_OPERATION),
}

_TALKATIVE = frozenset({"up", "worker", "dev"})


class Commands(TyperGroup):
    """Finds commands in the table above and among the entry points of `mindbus.commands`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The installed ones, as help lists them."""
        added = entry_points(group=GROUP).names
        available = [name for name, place in COMMANDS.items() if place.module or name in added]
        return available + sorted(added - COMMANDS.keys())

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup:
        """Import the command. Raises UsageError where it comes with a package that is not installed."""
        names = self.list_commands(ctx)
        if cmd_name not in names and cmd_name not in COMMANDS:
            matches = difflib.get_close_matches(cmd_name, names, 1)
            ctx.fail(f"there is no command {cmd_name!r}" + (f"; did you mean {matches[0]}?" if matches else ""))
        place = COMMANDS.get(cmd_name, Place(_MORE))
        group = get_group(_app(cmd_name, place))
        command: Any = group.commands.get(cmd_name, group)
        command.name = cmd_name
        command.rich_help_panel = place.panel
        return command  # type: ignore[no-any-return]  # as just found

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except EXPECTED as error:
            raise typer.Exit(report(error, ctx)) from None


app = typer.Typer(
    cls=Commands,
    name="mindbus",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"mindbus {__version__}")
        raise typer.Exit


@app.callback()
def mindbus(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """MindBus: teams of AI agents on RabbitMQ, artifacts by pointer.

    All local state lies under MINDBUS_DATA_DIR (default .data). Start with [bold]mindbus demo[/bold], or with
    [bold]mindbus up -d[/bold].
    """
    settings = read_settings()
    # A command's own words suffice; a service tells what it does.
    is_quiet = context.invoked_subcommand not in _TALKATIVE and settings.log_level.upper() == "INFO"
    configure_logs("WARNING" if is_quiet else settings.log_level, settings.log_format)


def _app(name: str, place: Place) -> typer.Typer:
    if place.module is not None:
        return cast("typer.Typer", importlib.import_module(place.module).app)
    for point in entry_points(group=GROUP, name=name):
        return cast("typer.Typer", point.load())
    raise UsageError(f"`mindbus {name}` comes with the fleet, which is not installed here: pip install mindbus-fleet")


def main() -> None:
    app()


if __name__ == "__main__":
    main()
