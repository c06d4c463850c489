"""Options of the `episodes` commands; episodes, search results and statistics as text and tables."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.text import Text

from bus_schema.episodes import ColdContent, Decision, Entity, Episode, EpisodeHead, HotContent, Layer, Note, RawTurn
from bus_schema.lsm_search import FoundEpisode, FoundEpisodes, TuneReport
from bus_schema.lsm_statistics import EpisodeStats
from bus_schema.packer import Packed
from mindbus.cli.console import say, say_data, show, show_table
from mindbus.terminal import escape_controls


def moment(text: str) -> datetime:
    """A time of which everybody knows when it was. Raises BadParameter."""
    advice = "write it with its zone, such as 2026-04-01T12:00:00Z or 2026-04-01T15:00:00+03:00"
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time; {advice}") from None
    if time.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no zone, so it could be several moments; {advice}")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is before or after all time that can be told; {advice}") from None


EpisodeIdArgument = Annotated[str, typer.Argument(metavar="ID", help="Such as ep_0192….")]
Chat = Annotated[str, typer.Option("--chat", metavar="CHAT", help="Whose: the user who talks, such as anna.")]
AnyChat = Annotated[str | None, typer.Option("--chat", metavar="CHAT", help="Only this chat; default: all.")]
Layers = Annotated[list[Layer] | None, typer.Option("--layer", help="Only this layer; may be repeated.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only about this; may be repeated.")]
Now = Annotated[
    datetime | None,
    typer.Option("--at", metavar="TIME", parser=moment, help="As of this time, with its zone; default: now."),
]
Since = Annotated[
    datetime | None, typer.Option("--since", metavar="TIME", parser=moment, help="Said at this time or later.")
]
Until = Annotated[
    datetime | None, typer.Option("--until", metavar="TIME", parser=moment, help="Said at this time or earlier.")
]


_STYLES = {Layer.HOT: "red", Layer.WARM: "yellow", Layer.COLD: "cyan"}
_SHOWN_CHARACTERS = 80


def show_episodes(heads: Iterable[EpisodeHead]) -> None:
    columns = ("episode", "chat", "when", "layer", "priority", "turns", "words", "what")
    show_table(columns, map(_row, heads))


def show_episode(episode: Episode) -> None:
    rows: dict[str, object] = {
        "episode": episode.id,
        "chat": episode.chat_id,
        "what": escape_controls(episode.headline),
        "when": f"{_at(episode.started_at)} to {_at(episode.ended_at)}",
        "layer": _layer(episode.layer),
        "priority": f"{episode.priority:.2f}",
        "anchor": episode.anchor_reason.value if episode.anchor_reason else "",
        "said": f"{episode.turns} turns, {episode.words} words",
        "used": f"{episode.access_count} times, last {_at(episode.last_accessed)}",
        "continues": episode.continues_from or "",
        "related": ", ".join(episode.related_to),
        "tags": escape_controls(", ".join(episode.tags)),
    }
    show_table(("", ""), ((name, value) for name, value in rows.items() if value))
    say("")
    _show_content(episode)
    _show_facts("notes", episode.notes)


def show_turns(turns: Iterable[RawTurn]) -> None:
    for turn in turns:
        line = Text(f"{_at(turn.time)}  ", style="dim")
        show(
            line.append(f"{escape_controls(turn.speaker or turn.role)}: ", "bold").append(
                escape_controls(turn.content), "none"
            )
        )


def show_search_result(found: FoundEpisodes, *, is_explained: bool) -> None:
    unpacked = ", read again word by word" if found.unpacked else ""
    degraded = "; compared by words alone" if found.is_degraded else ""
    say(f"{found.confidence}: {len(found.episodes)} episodes, {found.words} words{unpacked}{degraded}")
    if found.unreadable:
        say(f"left out: {found.unreadable} turns whose archive cannot be read")
    if found.asks_for:
        say(f"asks for: {', '.join(found.asks_for)}")
    for episode in found.episodes:
        say("")
        head = Text(f"{episode.episode_id}  ").append_text(_layer(episode.layer))
        show(
            head.append(f"  {_at(episode.started_at)}  {episode.score:.2f}  ").append(
                escape_controls(episode.headline), "bold"
            )
        )
        if is_explained:
            say(_why(episode))
        if episode.text is not None:
            say_data(escape_controls(episode.text))
        show_turns(episode.turns)
        if is_explained and episode.turns:
            say(f"turns: {', '.join(turn.raw_log_id for turn in episode.turns)}")
    if is_explained and found.search_id is not None:
        say("")
        say(f"search: {found.search_id}")


def show_stats(found: EpisodeStats) -> None:
    columns = ("layer", "episodes", "words", "were", "denser", "packs", "hits", "of use")
    rows = ((name, found.layers[name]) for name in Layer if name in found.layers)
    show_table(
        columns,
        (
            (_layer(name), of.episodes, of.words, of.raw_words, _times(of.compression), of.packs, of.hits, of.used)
            for name, of in rows
        ),
    )
    say("")
    facts = {
        "chats": found.chats,
        "turns in the log": found.turns,
        "episodes": f"{found.episodes}, {found.anchors} of them anchors",
        "searches": f"{found.searches}, {found.unpacked} read again word by word, {found.with_feedback} with feedback",
        "hit rate": "unknown without feedback" if found.hit_rate is None else f"{found.hit_rate:.0%}",
        "packs": f"{found.verified_packs} verified, {found.put_back} facts put back, {found.struck_out} struck out",
        "waiting for vectors": found.waiting_for_vectors,
    }
    if (sizes := found.sizes) is not None:
        texts, packs, vectors = map(decimal, (sizes.texts, sizes.packs, sizes.vectors))
        facts |= {
            "in the database": f"{texts} of texts, {packs} of packs, {vectors} of vectors",
            "in artifacts": f"{decimal(sizes.archives)}, which were {decimal(sizes.archived_texts)} of texts",
            "search indexes": f"{decimal(sizes.indexes)} in memory, {decimal(sizes.snapshots)} in files",
        }
    show_table(("", ""), facts.items())


def show_pack(packed: Packed) -> None:
    said = {
        "packed": f"is {packed.layer.value} now, {_times(packed.compression)} denser, verified",
        "unchanged": f"is {packed.layer.value}, as before",
        "refused": f"stays {packed.layer.value}: the pack was refused",
    }
    say(f"{packed.episode_id} {said[packed.outcome]}" + (f": {packed.reason}" if packed.reason else ""))
    for name, facts in (("put back", packed.put_back), ("struck out", packed.struck_out)):
        for fact in facts:
            say_data(escape_controls(f"  {name}: {fact}"))


def show_tuning(report: TuneReport) -> None:
    names = sorted(report.weights_before | report.weights_after)
    rows = [(name, *(_weight(w.get(name)) for w in (report.weights_before, report.weights_after))) for name in names]
    found = ("found of what was of use", _share(report.recall_before), _share(report.recall_after))
    show_table(("", "before", "after"), [*rows, found])
    say(f"from {report.queries} searches, {report.held_out} held out; {'kept' if report.applied else 'not kept'}")
    if report.reason:
        say(report.reason)


def _show_content(episode: Episode) -> None:
    content = episode.content
    if isinstance(content, ColdContent):
        say_data(escape_controls(content.headline))
        return
    if isinstance(content, HotContent):
        show_turns(content.raw_messages)
    else:
        say_data(escape_controls(content.summary))
        for point in content.key_points:
            say_data(escape_controls(f"  - {point}"))
    _show_facts("decisions", content.decisions)
    _show_facts("people and things", content.entities)


def _show_facts(name: str, facts: Sequence[Decision | Entity | Note]) -> None:
    if facts:
        say("")
        show(Text(name, style="bold"))
        for fact in facts:
            say_data(escape_controls(f"  {_told(fact)}"))


def _told(fact: Decision | Entity | Note) -> str:
    if isinstance(fact, Decision):
        return fact.text
    return f"{fact.text if isinstance(fact, Note) else fact.name} ({fact.kind})"


def _row(head: EpisodeHead) -> tuple[object, ...]:
    what = Text(escape_controls(head.headline[:_SHOWN_CHARACTERS]))
    if head.is_anchor:
        what.append(" anchor", style="magenta")
    priority = f"{head.priority:.2f}"
    return head.id, head.chat_id, _at(head.ended_at), _layer(head.layer), priority, head.turns, head.words, what


def _why(episode: FoundEpisode) -> str:
    if episode.explain is None:
        return ""
    signals = [f"{name} {value:.3f}" for name, value in episode.explain.signals.items()]
    return escape_controls("  " + " ".join([*signals, *episode.explain.words]))


def _layer(layer: Layer) -> Text:
    return Text(layer.value, style=_STYLES[layer])


def _times(compression: float | None) -> str:
    return "" if compression is None else f"{compression:.1f}×"


def _weight(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


def _at(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M")
