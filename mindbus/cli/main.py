"""The command line: a table of commands and those that other packages add."""

import difflib
import importlib
import io
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from mindbus.cli.console import note
from mindbus.cli.errors import EXPECTED, INTERRUPTED, UsageError, misspelt_settings, read_settings, report
from mindbus.cli.language import LANGUAGES, choose_language, translate, translate_command
from mindbus.logs import configure_logs, configure_logs_later
from mindbus.redaction import redact_tracebacks
from mindbus.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "mindbus.commands"
_FLEET, _WORK, _OPERATION, _MORE = "The fleet", "Work", "Operation", "More"


@dataclass(frozen=True)
class Place:
    """The heading under which help lists a command, its summary, its module; None: it comes with mindbus-fleet."""

    panel: str
    summary: str
    module: str | None = None
    is_hidden: bool = False


# A module is imported when its command is called: `mindbus health` runs as a probe every few seconds.
COMMANDS = {
    "up": Place(_FLEET, "Start RabbitMQ and the workers; keep them alive."),
    "down": Place(_FLEET, "Stop what `mindbus up -d` has started on this data folder."),
    "worker": Place(_FLEET, "Run workers in this process until SIGTERM or Ctrl-C.", "mindbus.cli.worker"),
    "dev": Place(
        _FLEET,
        "Run the workers of one file; restart them when it changes.",
        "mindbus.cli.dev",
    ),
    "new": Place(_FLEET, "Write a worker, agent, card or sub-agent to start from.", "mindbus.cli.new"),
    "status": Place(_FLEET, "Show what runs on this data folder and where; exit 1 if something is not well."),
    "logs": Place(_FLEET, "Show what workers have logged, and log now."),
    "open": Place(_FLEET, "Open the web app, signed in."),
    "health": Place(
        _FLEET,
        "Exit 0 when a worker is ready on this host, else 1.",
        "mindbus.cli.health",
    ),
    "demo": Place(_FLEET, "Turn a brief into an article, with a broker and a team of its own."),
    "send": Place(_WORK, "Send a command, or publish an event.", "mindbus.cli.send"),
    "watch": Place(
        _WORK,
        "Show events as they happen.",
        "mindbus.cli.events",
    ),
    "events": Place(
        _WORK,
        "Show the last events of the timeline.",
        "mindbus.cli.events",
    ),
    "artifacts": Place(_WORK, "Put, get and inspect artifacts.", "mindbus.cli.artifacts"),
    "process": Place(_WORK, "Run Process Cards, look at their runs and steer them."),
    "card": Place(_WORK, "Check Process Cards and draw them."),
    "roles": Place(_WORK, "List the roles of cards and check their files."),
    "chat": Place(
        _WORK,
        "Talk to the assistant: one message, or until Ctrl-D.",
        "mindbus.cli.chat",
    ),
    "dialogues": Place(_WORK, "List and show dialogues, end one.", "mindbus.cli.dialogues"),
    "sim": Place(_WORK, "Let simulated people talk."),
    "memory": Place(_WORK, "What agents know together: add, search, get, change, watch."),
    "episodes": Place(_WORK, "What was said long ago: import, list, find, unpack, anchor, pack."),
    "history": Place(_WORK, "Show and clear what models are reminded of.", "mindbus.cli.history"),
    "locks": Place(_WORK, "Take and release locks.", "mindbus.cli.coordination"),
    "counters": Place(_WORK, "Add to counters, read them.", "mindbus.cli.coordination"),
    "tasks": Place(_WORK, "List, add, complete, move and cancel tasks.", "mindbus.cli.tasks"),
    "agents": Place(_WORK, "The agents that read what people say."),
    "mcp": Place(_WORK, "Serve memory, artifacts, runs and tasks to an MCP client.", "mindbus.cli.mcp"),
    "users": Place(_WORK, "Add, list, show, change, export and forget users.", "mindbus.cli.users"),
    "user": Place(_WORK, "Deprecated name of `users`.", "mindbus.cli.users", is_hidden=True),
    "queues": Place(_OPERATION, "List the queues with their depth and consumers.", "mindbus.cli.queues"),
    "dlq": Place(_OPERATION, "Show dead letters, replay or drop them.", "mindbus.cli.dead_letters"),
    "stats": Place(_OPERATION, "Count what is stored, and say how long it is kept.", "mindbus.cli.storage"),
    "storage": Place(_OPERATION, "Maintain the store: garbage, audit, rebuild, numbers.", "mindbus.cli.storage"),
    "glm": Place(_OPERATION, "Maintain the global memory: do rows and vectors agree?"),
    "schema": Place(_OPERATION, "Contracts for other languages.", "mindbus.cli.schema"),
    "topology": Place(_OPERATION, "Keep the broker's queues and exchanges as the code says."),
    "upgrade": Place(_OPERATION, "Replace a fleet by a newer one, worker by worker."),
    "tenants": Place(_OPERATION, "Host fleets that share this one's servers, each for itself."),
    "credentials": Place(_OPERATION, "Make the passwords of a stack of containers, for each its own alone."),
    "backup": Place(_OPERATION, "Back up all data of this folder, while the fleet runs."),
    "backups": Place(_OPERATION, "List the backups in a place."),
    "restore": Place(_OPERATION, "Restore a backup into an empty data folder."),
    "doctor": Place(_OPERATION, "Check this machine and what runs on it."),
}

_TALKATIVE = frozenset({"up", "worker", "dev"})
# They run every few seconds and say one thing.
_PROBES = frozenset({"health"})
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_LOOPBACK = "localhost,127.0.0.1,::1"


class Commands(TyperGroup):
    """Finds commands in the table above and among the entry points of `mindbus.commands`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The installed ones, as help lists them."""
        added = {point.name for point in _entry_points()}
        available = [name for name, place in COMMANDS.items() if place.module or name in added]
        return available + sorted(added - COMMANDS.keys())

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup:
        """The command as help lists it: to import all of them for that would take seconds."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return self._import(ctx, cmd_name)
        return TyperCommand(
            cmd_name,
            help=translate(place.summary),
            rich_markup_mode="rich",
            rich_help_panel=translate(place.panel),
            hidden=place.is_hidden,
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str, TyperCommand | TyperGroup, list[str]]:
        """The command that is called, imported, with its arguments."""
        return args[0], self._import(ctx, args[0]), args[1:]

    def _import(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup:
        """Raises UsageError where a command comes with a package that is not installed."""
        if cmd_name not in COMMANDS and cmd_name not in (names := self.list_commands(ctx)):
            matches = difflib.get_close_matches(cmd_name, names, 1)
            hint = f"did you mean {matches[0]}?" if matches else "`mindbus --help` lists them"
            ctx.fail(translate(f"there is no command {cmd_name!r}; {hint}"))
        place = COMMANDS.get(cmd_name, Place(_MORE, ""))
        group = get_group(_app(cmd_name, place))
        command: Any = group.commands.get(cmd_name, group)
        command.name = cmd_name
        command.rich_help_panel = translate(place.panel)
        translate_command(command)
        return command  # type: ignore[no-any-return]  # as just found

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            note("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None
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


def _choose_language(name: str | None) -> None:
    if name is not None and name not in LANGUAGES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(LANGUAGES)}")
    choose_language(name)


@app.callback()
def mindbus(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
    _language: Annotated[
        str | None,
        typer.Option(
            "--lang",
            metavar="en|ru",
            help="Language of texts; default: as LANG says.",
            is_eager=True,
            callback=_choose_language,
        ),
    ] = None,
) -> None:
    """MindBus: teams of AI agents on RabbitMQ, artifacts by pointer.

    All local state lies under MINDBUS_DATA_DIR (default .data). Start with [bold]mindbus demo[/bold], or with
    [bold]mindbus up -d[/bold].
    """
    settings = read_settings()
    bypass_proxy_for_loopback()
    if context.invoked_subcommand not in _PROBES:
        for name, setting in misspelt_settings():
            note(f"warning: {name} is not a setting; did you mean {setting}?", style="yellow")
    # A command's own words suffice; a service tells what it does.
    is_quiet = context.invoked_subcommand not in _TALKATIVE and settings.log_level.upper() == "INFO"
    # structlog takes a tenth of a second to import; most commands log nothing.
    configure = configure_logs_later if is_quiet and "structlog" not in sys.modules else configure_logs
    configure("WARNING" if is_quiet else settings.log_level, settings.log_format)


def bypass_proxy_for_loopback() -> None:
    """Have every HTTP client of this process, and of its children, reach this machine without the environment's proxy.

    RabbitMQ's management API, a model server or an object store here would be asked for at the proxy.
    """
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if _PROXIES & {name.lower() for name in os.environ}:
        is_covered = given == "*" or _LOOPBACK in given
        extended = given if is_covered else ",".join(filter(None, (given, _LOOPBACK)))
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = extended


def _app(name: str, place: Place) -> typer.Typer:
    if place.module is not None:
        return cast("typer.Typer", importlib.import_module(place.module).app)
    for point in _entry_points():
        if point.name == name:
            return cast("typer.Typer", point.load())
    raise UsageError(f"`mindbus {name}` comes with the fleet, which is not installed here: pip install mindbus-fleet")


def _entry_points() -> "Iterable[EntryPoint]":
    # Imported here: it takes longer than all else that a command of the library does before it asks.
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def main() -> None:
    redact_tracebacks()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or a file that is not in UTF-8 shows "?" for what it cannot.
        sys.stdout.reconfigure(errors="replace")
    app()


if __name__ == "__main__":
    main()
