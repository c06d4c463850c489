"""The commands `episodes`: list, show and search long-term memory, with its statistics."""

from typing import Annotated, Literal

import typer

from bus_schema.lsm import GetEpisode, ListEpisodes
from bus_schema.lsm_search import MAX_BUDGET_WORDS, SearchEpisodes
from bus_schema.lsm_statistics import GetEpisodeStats
from mindbus.cli.console import show_result
from mindbus.cli.options import LOCAL_USER, As, Json, SearchWords
from mindbus.cli.session import answer_to, items_of
from mindbus_fleet.cli.episode_edit import anchor, feedback, pack, tune, unpack
from mindbus_fleet.cli.episode_import import import_
from mindbus_fleet.cli.episode_view import (
    AnyChat,
    Chat,
    EpisodeIdArgument,
    Layers,
    Now,
    Since,
    Tags,
    Until,
    show_episode,
    show_episodes,
    show_search_result,
    show_stats,
)

_PAGE = 200


def list_(
    chat: AnyChat = None,
    layer: Layers = None,
    anchors: Annotated[bool, typer.Option("--anchors", help="Only those that never go cold.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many to show, latest first.")] = 100,
    at: Now = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List episodes, the latest first.

    [bold]Examples[/bold]

    mindbus episodes ls --chat anna

    mindbus episodes ls --layer warm --layer cold --at 2026-06-01T00:00:00Z --json
    """
    fields = {"chat_id": chat, "layers": layer or (), "anchors_only": anchors, "at": at, "limit": min(limit, _PAGE)}
    heads = items_of(lambda: ListEpisodes.model_validate(fields), acting, limit)
    show_result(heads, show_episodes, as_json=as_json)


def show(episode_id: EpisodeIdArgument, at: Now = None, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show an episode as its layer keeps it: whole, as a summary with its facts, as a headline.

    [bold]Examples[/bold]

    mindbus episodes show ep_0192…

    mindbus episodes show ep_0192… --json
    """
    episode = answer_to(lambda: GetEpisode(episode_id=episode_id, at=at), acting)
    show_result(episode, show_episode, as_json=as_json)


def search(
    query: SearchWords,
    chat: Chat,
    budget_words: Annotated[
        int, typer.Option("--budget-words", min=1, max=MAX_BUDGET_WORDS, help="Words to return, at most.")
    ] = 1200,
    at: Now = None,
    layer: Layers = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    depth: Annotated[
        Literal["auto", "summary", "raw"],
        typer.Option("--depth", help="Summaries, the very words, or whichever it takes."),
    ] = "auto",
    newest_first: Annotated[bool, typer.Option("--newest-first", help="What was said last comes first.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each score is made of.")] = False,
    no_touch: Annotated[bool, typer.Option("--no-touch", help="Do not count what is found as used.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Find what was said about something, however long ago, as much of it as fits the budget.

    [bold]Examples[/bold]

    mindbus episodes search "what did the contractor promise" --chat anna

    mindbus episodes search "which day do we move" --chat anna --newest-first

    mindbus episodes search "когда сдаём макет" --chat anna --budget-words 600 --at 2026-12-01T00:00:00Z --json
    """
    fields = {"query": query, "chat_id": chat, "budget_words": budget_words, "at": at, "layers": layer or ()}
    fields |= {"tags": tag or (), "since": since, "until": until, "depth": depth}
    fields |= {"explain": explain, "touch": not no_touch, "newest_first": newest_first}
    found = answer_to(lambda: SearchEpisodes.model_validate(fields), acting)
    show_result(found, lambda _found: show_search_result(found, is_explained=explain), as_json=as_json)


def stats(chat: AnyChat = None, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Count what long-term memory keeps, how dense it is, how well it is searched.

    [bold]Example[/bold]

    mindbus episodes stats --chat anna
    """
    show_result(answer_to(lambda: GetEpisodeStats(chat_id=chat, with_sizes=True), acting), show_stats, as_json=as_json)


app = typer.Typer(no_args_is_help=True, help="What was said long ago: import, list, find, unpack, anchor, pack.")

app.command("import")(import_)
app.command("ls")(list_)
for command in (show, search, feedback, unpack, anchor, pack, stats, tune):
    app.command()(command)
