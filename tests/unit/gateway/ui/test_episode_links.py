"""The graph of what an episode continues, and of what speaks of the same matter."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bus_schema.episodes import EpisodeHead, Layer
from gateway.ui.episodes.links import graph_of_links, linked_ids
from gateway.ui.graph import drawing_of
from gateway.ui.i18n import Localizer

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def episode(number: int, continues: int | None = None, related: tuple[int, ...] = ()) -> EpisodeHead:
    at = NOON + timedelta(days=number)
    return EpisodeHead(
        id=f"ep_{number}",
        chat_id="anna",
        created_at=at,
        last_accessed=at,
        layer=Layer.HOT,
        priority=0.5,
        headline=f"Talk {number} <b>",
        continues_from=None if continues is None else f"ep_{continues}",
        related_to=tuple(f"ep_{each}" for each in related),
        started_at=at,
        ended_at=at,
        turns=2,
        words=20,
        version=1,
    )


def test_links_lead_from_what_was_said_first_and_a_common_matter_is_dashed() -> None:
    chat = (episode(1), episode(2, continues=1), episode(3, related=(1, 7)), episode(4), episode(5, continues=3))

    graph = graph_of_links(Localizer("en", ZoneInfo("UTC")), chat[1], chat)

    assert [node.id for node in graph.nodes] == ["ep_1", "ep_2", "ep_3"]
    assert graph.edges == {("ep_1", "ep_2"), ("ep_1", "ep_3")}
    assert graph.weak == {("ep_1", "ep_3")}
    drawing = drawing_of(graph, "ep_2", "Links")
    assert drawing.count("mb-weak-edge") == 1
    assert 'href="/episodes?episode=ep_1"' in drawing
    assert "<b>" not in drawing
    assert linked_ids(chat[2]) == ("ep_1", "ep_7")


def test_an_episode_alone_has_no_links() -> None:
    assert not graph_of_links(Localizer("ru", ZoneInfo("UTC")), episode(1), [episode(1), episode(2)]).edges
