"""The commands `users forget` and `users export`: remove or hand out all that is known of a user."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from zipfile import ZipFile

import typer

from bus_schema.data import DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from bus_schema.messages import Command
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.connection import open_transport
from mindbus.bus.deadletters import DeadLetter
from mindbus.cli.console import note, say, show_json, show_result, show_table
from mindbus.cli.dead_letters import for_services
from mindbus.cli.errors import CommandError, UsageError, read_settings
from mindbus.cli.options import LOCAL_USER, As, Json, UserArgument
from mindbus.cli.session import on_the_bus, run, shown_waiting
from mindbus.cli.user_access import end_access
from mindbus.cli.user_export import Export, UserExport, new_archive
from mindbus.cli.user_records import app
from mindbus.errors import BusUnavailable, MindBusError, ReplyError, Unroutable
from mindbus.registry import installed_workers
from mindbus.runtime.service import build
from mindbus.sdk.artifacts import open_artifacts
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
    """One after the other, each whatever the others say; of `others` none need ever have been started.

    Storage is asked again last: until it was asked itself, long-term memory may have put an archive there.
    """
    outcome = RemovalOutcome()
    again = [owner for owner in owners if owner == "storage" and "lsm" in owners]
    for owner in (*other_owners, *owners, *again):
        if owner in outcome.failed:
            continue
        try:
            removed = await bus.request(command, to=owner, timeout_s=within_s)
        except (ReplyError, BusUnavailable) as error:
            if owner in owners or not isinstance(error, Unroutable):
                outcome.failed[owner] = str(error)
        else:
            before = outcome.removed.get(owner, {})
            outcome.removed[owner] = removed.counts | {
                kind: count + removed.counts.get(kind, 0) for kind, count in before.items()
            }
    return outcome


def require_consent(question: str, *, is_given: bool) -> None:
    """Raises UsageError where there is nobody to ask; ends the command where they say no."""
    if is_given:
        return
    if not sys.stdin.isatty():
        raise UsageError("this cannot be undone, and there is no terminal to ask at: confirm it with --yes")
    typer.confirm(question, abort=True, err=True)


_WITHIN_S = 120.0


@app.callback()
def _warn(context: typer.Context) -> None:
    """Add, list, show and change users; list their facts, export what is known of them, forget them."""
    if context.info_name == "user":
        note("`mindbus user` is called `mindbus users` now", style="yellow")


@app.command()
def forget(
    user: UserArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Remove all that is known of a user, for good: dialogue, agents' notes of it, the user's artifacts, runs, access.

    What others have said of the user stays theirs; so does what agents have made in runs.

    [bold]Examples[/bold]

    mindbus users forget anna

    mindbus users forget anna --yes --json
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
    async with on_the_bus(identity, settings) as bus, shown_waiting("Asking every owner of data …"):
        other_owners = others_that_take(DeleteUser, settings)
        outcome = await ask_owners(bus, DeleteUser(user_id=user_id), FORGET, other_owners, within_s=_WITHIN_S)
    try:
        dropped = await for_services(None, lambda letters, service: letters.drop(service, _names(user_id)))
    except (MindBusError, OSError) as error:
        outcome.failed["dead letters"] = str(error)
    else:
        if dropped:
            outcome.removed["dead letters"] = {"messages": len(dropped)}
    try:
        accounts = await end_access(settings, user_id)
    except (MindBusError, OSError) as error:
        outcome.failed["access"] = str(error)
    else:
        if accounts:
            outcome.removed["access"] = {"accounts": accounts}
    return outcome


def _names(user_id: str) -> Callable[[DeadLetter], bool]:
    """True for a dead letter that names the user anywhere, as a whole string."""
    names = [f'"{name}"'.encode() for name in (user_id, f"user.{user_id}", conversation_trace(user_id))]
    return lambda letter: any(name in letter.body for name in names)


@app.command()
def export(
    user: UserArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="New file to write; default: USER.zip.")
    ] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Write all that is known of a user to a zip: dialogue, tasks, facts, memory, runs, artifacts with their bytes.

    JSON Lines, Markdown, a manifest with digests; it names what could not be read, which ends with exit code 1.

    [bold]Examples[/bold]

    mindbus users export anna

    mindbus users export anna -o anna.zip --as user.anna --json
    """
    path = output or Path(f"{user}.zip")
    if path.exists():
        raise UsageError(f"{path} is there already: name another file with -o")
    with new_archive(path) as archive:
        done = run(_export(user, archive, acting))
    text = f"{path}: {len(done.files)} files; manifest.json lists them"
    show_result({"user_id": user, "path": str(path), **done.as_json()}, text, as_json=as_json)
    if done.missing:
        reasons = "; ".join(f"{part}: {reason}" for part, reason in done.missing.items())
        raise CommandError(f"not all could be read, {path} has the rest. {reasons}", Code.UNAVAILABLE)


async def _export(user_id: str, archive: ZipFile, identity: str) -> Export:
    settings = read_settings()
    async with (
        on_the_bus(identity, settings, goes_on=None) as bus,
        shown_waiting("Reading what is known …"),
        open_artifacts(bus.acting_as(f"user.{user_id}"), settings) as artifacts,
    ):
        return await UserExport(bus, artifacts, user_id).write(archive, identity)
