from datetime import UTC, datetime, timedelta

from rich.console import Console

from bus_schema.artifacts import Manifest
from bus_schema.storage import Lineage, LineageEdge
from mindbus.cli.lineage_view import lineage_tree


def test_a_tree_unfolds_each_artifact_once() -> None:
    names = ("brief", "research", "draft", "final")
    made_from = [("brief", "research"), ("research", "draft"), ("draft", "final"), ("research", "final")]
    lineage = Lineage(
        nodes=tuple(a_manifest(name, number) for number, name in enumerate(names)),
        edges=tuple(LineageEdge(source=f"art_{source}", target=f"art_{target}") for source, target in made_from),
    )

    drawn = draw(lineage, "art_final", "up")

    assert drawn == [
        "final  agent.a  art_final",
        "├── research  agent.a  art_research",
        "│   └── brief  agent.a  art_brief",
        "└── draft  agent.a  art_draft",
        "    └── research  agent.a  art_research  (see above)",
    ]


def test_what_the_asker_may_not_see_is_a_leaf_without_a_name() -> None:
    lineage = Lineage(nodes=(a_manifest("final", 0),), edges=(LineageEdge(source="art_secret", target="art_final"),))

    assert draw(lineage, "art_final", "up")[-1] == "└── (not visible)  art_secret"


def test_down_follows_what_was_made_from_it() -> None:
    lineage = Lineage(
        nodes=(a_manifest("brief", 0), a_manifest("final", 1)),
        edges=(LineageEdge(source="art_brief", target="art_final"),),
    )

    assert draw(lineage, "art_brief", "down") == ["brief  agent.a  art_brief", "└── final  agent.a  art_final"]


def draw(lineage: Lineage, root: str, direction: str) -> list[str]:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(lineage_tree(lineage, root, "up" if direction == "up" else "down"))
    return captured.get().rstrip().splitlines()


def a_manifest(name: str, minute: int) -> Manifest:
    return Manifest(
        id=f"art_{name}",
        trace_id="t1",
        created_by="agent.a",
        created_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute),
        artifact_type=name,
        content_type="text/plain",
        uri="somewhere",
        size_bytes=1,
        checksum="sha256:" + "0" * 64,
        owner="agent.a",
    )
