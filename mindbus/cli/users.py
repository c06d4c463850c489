"""The command `user forget`: removes all that is known of a user, in every service that owns data."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from bus_schema.data import DeleteUser, Removed
from bus_schema.messages import Command
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.connection import open_transport
from mindbus.cli.console import say, show_json, show_table
from mindbus.cli.errors import CommandError, UsageError, read_settings
from mindbus.cli.options import LOCAL_USER, As, Json, UserArgument
from mindbus.cli.session import on_the_bus, run
from mindbus.errors import BusUnavailable, ReplyError, Unroutable
from mindbus.registry import installed_workers
from mindbus.runtime.service import build
from mindbus.settings import Settings

# Whoever makes data comes before whoever keeps it. Memory comes last: of what is still on its way there, only that is
# kept of which storage has the messages.
CLEAR = ("sim", "orchestrator", "storage", "history", "swm", "glm", "lsm")
FORGET = (
    "task_manager",
    "context_manager",
    "mood_watcher",
    "context",
    "orchestrator",
    "storage",
    "history",
    "swm",
    "glm",
    "lsm",
)


def others_that_take(command: type[Command[Removed]], settings: Settings) -> list[str]:
    """Workers of other packages that own data; whoever does not take the command is not asked."""
    owners = installed_workers().checked().third_party
    built = {
        name: build(entry, name, settings, open_transport(settings, name)) for name, entry in sorted(owners.items())
    }
    return [name for name, service in built.items() if command in service.worker.routes.commands]


@dataclass
class RemovalOutcome:
    """Number of removed items by owner and kind; `failed` gives the reason for each owner that did not remove any."""

    removed: dict[str, dict[str, int]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def show(self) -> None:
        rows = [(owner, *row) for owner, counts in self.removed.items() for row in (counts or {"": 0}).items()]
        show_table(("owner", "what", "removed"), rows)

    def require_all(self) -> None:
        """Raises CommandError unless every owner has done it."""
        if self.failed:
            reasons = "; ".join(f"{owner}: {reason}" for owner, reason in self.failed.items())
            raise CommandError(
                f"not everything is gone; start what does not run, then repeat. {reasons}", Code.UNAVAILABLE
            )


async def ask_owners(
    bus: Client, command: Command[Removed], owners: Sequence[str], other_owners: Iterable[str] = (), *, within_s: float
) -> RemovalOutcome:
    """One after the other, each whatever the others say; of `others` none need ever have been started."""
    outcome = RemovalOutcome()
    for owner in (*other_owners, *owners):
        try:
            removed = await bus.request(command, to=owner, timeout_s=within_s)
        except (ReplyError, BusUnavailable) as error:
            if owner in owners or not isinstance(error, Unroutable):
                outcome.failed[owner] = str(error)
        else:
            outcome.removed[owner] = removed.counts
    return outcome


def require_consent(question: str, *, is_given: bool) -> None:
    """Raises UsageError where there is nobody to ask; ends the command where they say no."""
    if is_given:
        return
    if not sys.stdin.isatty():
        raise UsageError("this cannot be undone, and there is no terminal to ask at: confirm it with --yes")
    typer.confirm(question, abort=True, err=True)


app = typer.Typer(no_args_is_help=True, help="Forget users.")

_WITHIN_S = 120.0


@app.callback()
def _user() -> None:
    """Without it, a group of one command would be that command."""


@app.command()
def forget(
    user: UserArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Remove all that is known of a user, for good: the dialogue, what agents noted of it, the user's artifacts, runs.

    What others have said of the user stays theirs; so does what agents have made in runs.

    [bold]Examples[/bold]

    mindbus user forget anna

    mindbus user forget anna --yes --json
    """
    require_consent(f"Remove all that is known of {user}, for good?", is_given=yes)
    outcome = run(_forget(user, acting))
    if as_json and not outcome.failed:
        show_json({"user_id": user, "removed": outcome.removed})
    elif not as_json:
        outcome.show()
    outcome.require_all()
    if not as_json:
        say(f"{user} is forgotten; files go within seconds")


async def _forget(user_id: str, identity: str) -> RemovalOutcome:
    settings = read_settings()
    async with on_the_bus(identity, settings) as bus:
        other_owners = others_that_take(DeleteUser, settings)
        return await ask_owners(bus, DeleteUser(user_id=user_id), FORGET, other_owners, within_s=_WITHIN_S)
