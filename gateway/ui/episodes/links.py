"""Links of an episode as a graph: what it continues, what speaks of the same matter."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from urllib.parse import urlencode

from bus_schema.episodes import EpisodeHead
from gateway.ui.graph import Graph, Node
from gateway.ui.i18n import Localizer

_MAX_NODES, _STEPS, _LONGEST = 12, 2, 26


def linked_ids(episode: EpisodeHead) -> tuple[str, ...]:
    """Ids of the earlier episodes that an episode names."""
    before = () if episode.continues_from is None else (episode.continues_from,)
    return (*before, *episode.related_to)


def graph_of_links(i18n: Localizer, chosen: EpisodeHead, chat: Iterable[EpisodeHead]) -> Graph:
    """Episodes of the chat that are at most two links away, from earlier to later; a dashed edge is a common matter."""
    heads = {head.id: head for head in (*chat, chosen)}
    continued = {(head.continues_from, head.id) for head in heads.values() if head.continues_from in heads}
    related = {
        _in_time(heads[other], head) for head in heads.values() for other in head.related_to if other in heads
    } - continued
    edges = continued | related
    near = {chosen.id}
    for _ in range(_STEPS):
        near |= {name for edge in edges if near.intersection(edge) for name in edge}
    nodes = tuple(_node(i18n, heads[name]) for name in sorted(near, key=lambda name: heads[name].started_at))
    return Graph(nodes, _within(edges, near), _within(related, near)).around(chosen.id, _MAX_NODES)


def _in_time(one: EpisodeHead, other: EpisodeHead) -> tuple[str, str]:
    first, second = sorted((one, other), key=lambda head: (head.started_at, head.id))
    return first.id, second.id


def _within(edges: Collection[tuple[str | None, str]], near: Collection[str]) -> frozenset[tuple[str, str]]:
    return frozenset((source, target) for source, target in edges if source in near and source and target in near)


def _node(i18n: Localizer, head: EpisodeHead) -> Node:
    about = f"{i18n.date(head.started_at, datetime.now(UTC))} · {i18n(f'episodes.layer.{head.layer.value}')}"
    target = f"/episodes?{urlencode({'episode': head.id})}"
    return Node(head.id, head.headline, about, "registered", target, _LONGEST)
