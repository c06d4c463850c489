"""Removal of data by the services that own it: clearing all of it, or what is known of one user."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import typer

from bus_schema.data import Removed
from bus_schema.messages import Command
from bus_schema.replies import Code
from mindbus.bus.client import Client
from mindbus.bus.connection import open_transport
from mindbus.cli.console import show_table
from mindbus.cli.errors import CommandError, UsageError
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
    others = installed_workers().checked().third_party
    built = {
        name: build(entry, name, settings, open_transport(settings, name)) for name, entry in sorted(others.items())
    }
    return [name for name, service in built.items() if command in service.worker.routes.commands]


@dataclass
class RemovalOutcome:
    """What is gone, by owner and kind; `failed` says of the others why not."""

    removed: dict[str, dict[str, int]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def show(self) -> None:
        """As a table, for people."""
        rows = [
            (owner, kind, count)
            for owner, counts in self.removed.items()
            for kind, count in (counts or {"": 0}).items()
        ]
        show_table(("owner", "what", "removed"), rows)

    def require_all(self) -> None:
        """Raises CommandError unless every owner has done it."""
        if self.failed:
            said = "; ".join(f"{owner}: {reason}" for owner, reason in self.failed.items())
            raise CommandError(
                f"not everything is gone; start what does not run, then repeat. {said}", Code.UNAVAILABLE
            )


async def ask_owners(
    bus: Client, command: Command[Removed], owners: Sequence[str], others: Iterable[str] = (), *, within_s: float
) -> RemovalOutcome:
    """One after the other, each whatever the others say; of `others` none need ever have been started."""
    outcome = RemovalOutcome()
    for owner in (*others, *owners):
        try:
            removed = await bus.request(command, to=owner, timeout_s=within_s)
        except Unroutable as unroutable:
            if owner in owners:
                outcome.failed[owner] = str(unroutable)
        except (ReplyError, BusUnavailable) as no:
            outcome.failed[owner] = str(no)
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
