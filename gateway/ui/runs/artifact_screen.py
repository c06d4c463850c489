"""One artifact by itself: what it was made from, what was made from it, what it looks like."""

from nicegui import ui

from gateway.ui.frame import Frame
from gateway.ui.parts import attributes, box, short_id
from gateway.ui.runs.artifact_panel import ArtifactPanel
from gateway.ui.runs.lineage import Graph, drawing_of
from gateway.ui.runs.provenance import node_of
from gateway.ui.trouble import Part

_MOST_NODES = 40


class ArtifactScreen:
    """For artifacts of any trace; those of a run have their run around them."""

    def __init__(self, frame: Frame, artifact_id: str) -> None:
        self.frame, self.artifact_id = frame, artifact_id
        frame.shell.crumbs([(frame.words("nav.runs"), "/runs"), (short_id(artifact_id), "")])
        with box("mb-run-right mb-alone") as place:
            self.part = Part(frame.words, place)
            self._graph = ui.html("", sanitize=False).classes("mb-scroll mb-lineage")
            attributes(self._graph, tabindex="0")
            self.panel = ArtifactPanel(frame, box("mb-artifact-panel"))

    @classmethod
    async def draw(cls, frame: Frame, artifact_id: str) -> None:
        """Show it; an artifact does not change."""
        screen = cls(frame, artifact_id)
        await screen.part.attempt(screen.look)

    async def look(self) -> None:
        """Ask storage, which shows what this user may see."""
        trace = self.frame.query.get("trace")
        await self.panel.show(self.artifact_id, trace)
        found = await self.frame.backend.lineage(self.artifact_id, "both", trace=trace)
        nodes = tuple(node_of(manifest, is_source=False) for manifest in found.nodes)
        known = {node.id for node in nodes}
        edges = frozenset((edge.source, edge.target) for edge in found.edges if {edge.source, edge.target} <= known)
        graph = Graph(nodes, edges).around(self.artifact_id, _MOST_NODES)
        self._graph.set_content(drawing_of(graph, self.artifact_id, self.frame.words("run.lineage")))
