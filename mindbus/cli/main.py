"""The command line: every command, with the module that has it."""

import difflib
import importlib
import importlib.metadata
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from mindbus.cli.environment import read_settings
from mindbus.logs import configure_logs


@dataclass(frozen=True)
class Place:
    """Where a command is defined, and under which heading help lists it."""

    module: str
    panel: str


_FLEET, _WORK, _OPERATION = "The fleet", "Work", "Operation"

# A module is imported when its command is called: `mindbus health` runs as a probe every few seconds.
COMMANDS = {
    "up": Place("mindbus_fleet.cli.fleet", _FLEET),
    "down": Place("mindbus_fleet.cli.fleet", _FLEET),
    "worker": Place("mindbus.cli.worker", _FLEET),
    "health": Place("mindbus.cli.health", _FLEET),
    "demo": Place("mindbus_fleet.cli.demo", _FLEET),
    "send": Place("mindbus.cli.sending", _WORK),
    "watch": Place("mindbus.cli.watching", _WORK),
    "events": Place("mindbus.cli.events", _WORK),
    "artifacts": Place("mindbus.cli.artifacts", _WORK),
    "process": Place("mindbus_fleet.cli.processes", _WORK),
    "chat": Place("mindbus.cli.chat", _WORK),
    "dialogues": Place("mindbus.cli.dialogues", _WORK),
    "sim": Place("mindbus_fleet.cli.simulation", _WORK),
    "memory": Place("mindbus_fleet.cli.memory", _WORK),
    "episodes": Place("mindbus_fleet.cli.episodes", _WORK),
    "history": Place("mindbus.cli.history", _WORK),
    "locks": Place("mindbus.cli.locks", _WORK),
    "counters": Place("mindbus.cli.counters", _WORK),
    "user": Place("mindbus_fleet.cli.users", _OPERATION),
    "queues": Place("mindbus.cli.queues", _OPERATION),
    "dlq": Place("mindbus.cli.dead_letters", _OPERATION),
    "storage": Place("mindbus.cli.storage", _OPERATION),
    "glm": Place("mindbus_fleet.cli.glm", _OPERATION),
    "schema": Place("mindbus.cli.schema", _OPERATION),
    "topology": Place("mindbus_fleet.cli.topology", _OPERATION),
    "doctor": Place("mindbus_fleet.cli.doctor", _OPERATION),
}

_TALKATIVE = frozenset({"up", "worker"})


class Commands(TyperGroup):
    """Finds commands by the table above; ends an expected failure with one clear message."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All of them, as help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup:
        """Import the module that has it."""
        if cmd_name not in COMMANDS:
            near = difflib.get_close_matches(cmd_name, COMMANDS, 1)
            ctx.fail(f"there is no command {cmd_name!r}" + (f"; did you mean {near[0]}?" if near else ""))
        place = COMMANDS[cmd_name]
        group = get_group(importlib.import_module(place.module).app)
        command: Any = group.commands.get(cmd_name, group)
        command.name = cmd_name
        command.rich_help_panel = place.panel
        return command  # type: ignore[no-any-return]  # as just found

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except _expected() as failure:
            from mindbus.cli.complaints import complain

            raise typer.Exit(complain(failure, ctx)) from None


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
        typer.echo(f"mindbus {importlib.metadata.version('mindbus')}")
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


def main() -> None:
    """What the `mindbus` executable runs."""
    app()


def _expected() -> tuple[type[Exception], ...]:
    from mindbus.cli.complaints import EXPECTED

    return EXPECTED


if __name__ == "__main__":
    main()
