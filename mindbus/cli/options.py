"""Options that many commands share."""

import re
from typing import Annotated

import typer

from bus_schema.identities import IDENTITY, is_user_id

JSON_WANTED = "mindbus json"
_TRACE = r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}"


def wants_json(context: typer.Context) -> bool:
    """Whether the command in hand was asked for JSON."""
    return bool(context.find_root().meta.get(JSON_WANTED, False))


def _remember(context: typer.Context, as_json: bool) -> bool:
    context.find_root().meta[JSON_WANTED] = as_json
    return as_json


def _identity(identity: str) -> str:
    if not re.fullmatch(IDENTITY, identity):
        raise typer.BadParameter(
            f"{identity!r} is no identity; write agent.ROLE, agent.ROLE.INSTANCE, user.NAME or svc.SERVICE"
        )
    return identity


def _user(user_id: str) -> str:
    if not is_user_id(user_id):
        raise typer.BadParameter(
            f"{user_id!r} is no user id; it has 1 to 64 Latin letters, digits and _@.- with no sign at its start"
        )
    return user_id


def _trace(trace: str | None) -> str | None:
    if trace is not None and not re.fullmatch(_TRACE, trace):
        raise typer.BadParameter(f"{trace!r} is no trace; it has letters, digits and _.:@- only, such as run_0192…")
    return trace


Json = Annotated[
    bool, typer.Option("--json", callback=_remember, help="Print JSON, and nothing else on standard output.")
]
As = Annotated[
    str,
    typer.Option("--as", metavar="IDENTITY", callback=_identity, help="Who asks: user.NAME, agent.ROLE[.INSTANCE]."),
]
Trace = Annotated[
    str | None,
    typer.Option("--trace", metavar="TRACE", callback=_trace, help="The business trace, such as a run's id."),
]
RequiredTrace = Annotated[
    str, typer.Option("--trace", metavar="TRACE", callback=_trace, help="The trace that it belongs to.")
]
User = Annotated[str, typer.Option("--user", metavar="USER", callback=_user, help="Who speaks, such as anna.")]
UserArgument = Annotated[str, typer.Argument(metavar="USER", callback=_user, help="Whose, such as anna's.")]

LOCAL_USER = "user.local"
