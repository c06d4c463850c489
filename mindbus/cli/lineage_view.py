"""An artifact's lineage as a tree."""

from collections import defaultdict
from typing import Literal

from rich.text import Text
from rich.tree import Tree

from bus_schema.artifacts import Manifest
from bus_schema.storage import Lineage


def lineage_tree(lineage: Lineage, root: str, direction: Literal["up", "down"]) -> Tree:
    """From an artifact to what it was made from, or to what was made from it; each is unfolded once."""
    manifests = {manifest.id: manifest for manifest in lineage.nodes}
    neighbours: dict[str, list[str]] = defaultdict(list)
    for edge in lineage.edges:
        parent, child = (edge.target, edge.source) if direction == "up" else (edge.source, edge.target)
        neighbours[parent].append(child)
    created = {manifest.id: manifest.created_at.isoformat() for manifest in lineage.nodes}
    unfolded: set[str] = set()

    def grow(branch: Tree, artifact_id: str) -> None:
        unfolded.add(artifact_id)
        for neighbour in sorted(neighbours[artifact_id], key=lambda one: created.get(one, "")):
            is_repeated = neighbour in unfolded and bool(neighbours[neighbour])
            twig = branch.add(_label(neighbour, manifests.get(neighbour), is_repeated=is_repeated))
            if neighbour not in unfolded:
                grow(twig, neighbour)

    tree = Tree(_label(root, manifests.get(root), is_repeated=False), guide_style="dim")
    grow(tree, root)
    return tree


def _label(artifact_id: str, manifest: Manifest | None, *, is_repeated: bool) -> Text:
    label = Text(manifest.artifact_type if manifest else "(not visible)", style="bold")
    if manifest is not None:
        label.append(f"  {manifest.created_by}", style="cyan")
    label.append(f"  {artifact_id}", style="dim")
    if is_repeated:
        label.append("  (see above)", style="dim")
    return label
