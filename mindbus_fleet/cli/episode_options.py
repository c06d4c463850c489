"""Options of the `episodes` commands."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from bus_schema.episodes import Layer


def moment(text: str) -> datetime:
    """A time of which everybody knows when it was. Raises BadParameter."""
    advice = "write it with its zone, such as 2026-04-01T12:00:00Z or 2026-04-01T15:00:00+03:00"
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time; {advice}") from None
    if time.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no zone, so it could be several moments; {advice}")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is before or after all time that can be told; {advice}") from None


EpisodeIdArgument = Annotated[str, typer.Argument(metavar="ID", help="Such as ep_0192….")]
Chat = Annotated[str, typer.Option("--chat", metavar="CHAT", help="Whose: the user who talks, such as anna.")]
AnyChat = Annotated[str | None, typer.Option("--chat", metavar="CHAT", help="Of that chat; default: of all.")]
Layers = Annotated[list[Layer] | None, typer.Option("--layer", help="Of that layer; may be given again.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="About that; may be given again.")]
Now = Annotated[
    datetime | None,
    typer.Option("--at", metavar="TIME", parser=moment, help="As if it were then, with its zone; default: now."),
]
Since = Annotated[datetime | None, typer.Option("--since", metavar="TIME", parser=moment, help="Said not before then.")]
Until = Annotated[datetime | None, typer.Option("--until", metavar="TIME", parser=moment, help="Said not after then.")]
