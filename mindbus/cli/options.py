"""Options that many commands share."""

import re
from typing import Annotated

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from bus_schema.identities import IDENTITY, is_user_id, owner_of
from mindbus.settings import Settings

TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"]
"""Formats of a time on the command line; without a zone it is this machine's."""

JSON_WANTED = "mindbus json"
_TRACE = r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}"


def wants_json(context: typer.Context) -> bool:
    """Whether the command in hand was asked for JSON."""
    return bool(context.find_root().meta.get(JSON_WANTED, False))


def _remember(context: typer.Context, as_json: bool) -> bool:
    context.find_root().meta[JSON_WANTED] = as_json
    return as_json


def own_identity() -> str | None:
    """Identity of whoever MINDBUS_AMQP_URL logs in as; None where it may be anybody, as for the owner of a node."""
    try:
        return Settings().own_identity
    except (ValidationError, SettingsError):
        # The command says so itself.
        return None


def _identity(context: typer.Context, option: typer.CallbackParam, identity: str) -> str:
    own = own_identity()
    source = context.get_parameter_source(option.name or "")
    if own is not None and source is not None and source.name == "DEFAULT":
        return own
    if not re.fullmatch(IDENTITY, identity):
        raise typer.BadParameter(
            f"{identity!r} is not an identity; write agent.ROLE, agent.ROLE.INSTANCE, user.NAME or svc.SERVICE"
        )
    if own is not None and owner_of(identity) != own:
        raise typer.BadParameter(f"by MINDBUS_AMQP_URL you are {own}, and nobody else")
    return identity


def _name_or_identity(context: typer.Context, option: typer.CallbackParam, who: str) -> str:
    is_name = is_user_id(who) and not re.fullmatch(IDENTITY, who)
    return _identity(context, option, f"user.{who}" if is_name else who)


def _user(user_id: str) -> str:
    if not is_user_id(user_id):
        raise typer.BadParameter(
            f"{user_id!r} is not a user id; it has 1 to 64 Latin letters, digits and _@.- with no sign at its start"
        )
    return user_id


def _speaker(user_id: str) -> str:
    own = own_identity()
    if own is not None and f"user.{_user(user_id)}" != own:
        raise typer.BadParameter(f"by MINDBUS_AMQP_URL you are {own}, and speak for nobody else")
    return _user(user_id)


def _trace(trace: str | None) -> str | None:
    if trace is not None and not re.fullmatch(_TRACE, trace):
        raise typer.BadParameter(f"{trace!r} is not a trace; it has letters, digits and _.:@- only, such as run_0192…")
    return trace


def _search_words(text: str) -> str:
    if not text.strip():
        raise typer.BadParameter('say what to look for, such as "when is the release"')
    return text


Json = Annotated[
    bool, typer.Option("--json", callback=_remember, help="Print JSON, and nothing else on standard output.")
]
As = Annotated[
    str,
    typer.Option("--as", metavar="IDENTITY", callback=_identity, help="Who asks: user.NAME, agent.ROLE[.INSTANCE]."),
]
AsNamed = Annotated[
    str,
    typer.Option("--as", metavar="NAME", callback=_name_or_identity, help="Who asks: a user, by name or as user.NAME."),
]
Trace = Annotated[
    str | None,
    typer.Option("--trace", metavar="TRACE", callback=_trace, help="The business trace, such as a run's id."),
]
RequiredTrace = Annotated[
    str, typer.Option("--trace", metavar="TRACE", callback=_trace, help="The trace that it belongs to.")
]
User = Annotated[str, typer.Option("--user", metavar="USER", callback=_speaker, help="Who speaks, such as anna.")]
UserArgument = Annotated[str, typer.Argument(metavar="USER", callback=_user, help="The user, such as anna.")]

SearchWords = Annotated[
    str, typer.Argument(metavar="QUERY", callback=_search_words, help="What you look for, in your own words.")
]

LOCAL_USER = "user.local"
