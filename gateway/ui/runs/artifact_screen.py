"""The artifact screen and the artifact panel: preview, manifest, versions, lineage."""

import asyncio
from collections.abc import Sequence
from urllib.parse import urlencode

from nicegui import ui
from nicegui.element import Element

from bus_schema.artifacts import Manifest
from bus_schema.storage import GetLineage
from gateway.ui.components import (
    SegmentedControl,
    anchor,
    attributes,
    box,
    icon_link,
    identifier,
    moment,
    short_id,
    show_if,
    text,
)
from gateway.ui.graph import Graph, drawing_of
from gateway.ui.page_session import PageSession
from gateway.ui.rich_text import as_html, json_view, markdown
from gateway.ui.runs.lineage import artifact_url, node_of
from gateway.ui.runs.source import ArtifactSource, LiveArtifacts, ShownArtifact
from gateway.ui.sections import EXPECTED_ERRORS, ScreenSection, show_error
from gateway.ui.svg import icon
from language.markdown import plain_document

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_AT_ONCE_BYTES = 1024 * 1024


class ArtifactPanel:
    """Preview, manifest and versions; of a large artifact only the beginning."""

    def __init__(self, session: PageSession, place: Element, source: ArtifactSource) -> None:
        self.session, self.place, self.source = session, place, source
        self._wanted = ""

    async def show(self, artifact_id: str, trace: str | None) -> None:
        """Show an artifact; of several that are being read the one that was asked for last."""
        if self._wanted == artifact_id:
            return
        self._wanted = artifact_id
        self.place.clear()
        try:
            found = await self.source.artifact(artifact_id, trace)
            # A long document is laid out, and kept, aside: nobody else waits for it.
            await asyncio.to_thread(as_html, found.preview.text)
        except EXPECTED_ERRORS as error:
            if self._wanted == artifact_id:
                self._wanted = ""
                with self.place:
                    show_error(self.session.i18n, error, lambda: self.show(artifact_id, trace), trace or "")
            return
        if self._wanted == artifact_id:
            self.place.clear()
            with self.place:
                self._draw(found)

    def _draw(self, found: ShownArtifact) -> None:
        i18n, manifest = self.session.i18n, found.manifest
        self._head(found)
        with box("mb-tabs"):
            tabs = ("preview", "manifest", "versions", "used_in")
            bodies: dict[str, Element] = {}

            def choose(chosen: str) -> None:
                for key, body in bodies.items():
                    show_if(body, key == chosen)

            SegmentedControl([(key, i18n(f"artifact.{key}")) for key in tabs], "preview", choose)
            box("mb-grow")
            digest = text(f"sha256 {manifest.sha256[:8]}…{manifest.sha256[-4:]}", "mb-mono mb-t3")
            attributes(digest, title=manifest.sha256)
            text(i18n.bytes(manifest.size_bytes), "mb-meta mb-num")
            text(manifest.visibility, "mb-meta")
        for key in tabs:
            bodies[key] = attributes(box("mb-scroll mb-grow mb-artifact-body"), tabindex="0")
        with bodies["preview"]:
            self._preview(found)
        with bodies["manifest"]:
            json_view(manifest.model_dump(mode="json", exclude_none=True))
        with bodies["versions"]:
            self._versions(found.versions)
        with bodies["used_in"]:
            self._show_used_in(found)
        choose("preview")

    def _head(self, found: ShownArtifact) -> None:
        i18n, manifest = self.session.i18n, found.manifest
        with box("mb-head mb-artifact-head"):
            icon("file")
            identifier(i18n, manifest.id, artifact_url(manifest.id, manifest.trace_id))
            about = f"{manifest.artifact_type} v{manifest.version} · {manifest.content_type}"
            text(about, "mb-t3 mb-ell mb-grow")
            if found.address:
                icon_link("download", i18n("artifact.download"), found.address, download=manifest.id)

    def _preview(self, found: ShownArtifact) -> None:
        i18n, manifest, preview = self.session.i18n, found.manifest, found.preview
        content_type = manifest.content_type.partition(";")[0]
        if content_type in _PICTURES and manifest.size_bytes <= _AT_ONCE_BYTES:
            attributes(box("mb-picture", "img"), src=found.address, alt=manifest.id)
        elif preview.kind == "text" and content_type == "text/markdown":
            markdown(preview.text, "mb-document")
        elif preview.kind == "empty":
            text(i18n("artifact.empty"), "mb-meta")
        else:
            text(preview.text, "mb-json mb-document", "pre")
        if preview.is_cut:
            with box("mb-line-x mb-meta mb-cut"):
                text(i18n("artifact.cut"))
                anchor(found.address, i18n("artifact.whole"))

    def _versions(self, versions: Sequence[Manifest]) -> None:
        i18n = self.session.i18n
        for version in reversed(versions):
            with box("mb-line-x mb-version"):
                text(f"v{version.version}", "mb-strong mb-num")
                identifier(i18n, version.id, artifact_url(version.id, version.trace_id))
                text(version.created_by, "mb-meta mb-ell mb-grow")
                moment(i18n, version.created_at, i18n.time(version.created_at))

    def _show_used_in(self, found: ShownArtifact) -> None:
        i18n = self.session.i18n
        for each in found.made:
            with box("mb-line-x mb-version"):
                icon("file", "mb-i14 mb-t3")
                identifier(i18n, each.id, artifact_url(each.id, each.trace_id))
                text(f"{each.artifact_type} v{each.version} · {each.created_by}", "mb-meta mb-ell mb-grow")
                moment(i18n, each.created_at, i18n.time(each.created_at))
        for kem in found.units:
            with box("mb-line-x mb-version"):
                icon("memory", "mb-i14 mb-kem-colour")
                anchor(f"/memory?{urlencode({'kem': kem.id})}", i18n("artifact.unit"))
                text(plain_document(kem.content or ""), "mb-meta mb-ell mb-grow")
        talk = found.manifest.trace_id.removeprefix("conv_")
        if talk != found.manifest.trace_id:
            with box("mb-line-x mb-version"):
                icon("chat", "mb-i14 mb-t3")
                name = self.session.backend.names.of(talk)
                anchor(f"/chat?{urlencode({'with': talk})}", i18n("artifact.dialogue", user=name))
        elif not (found.made or found.units):
            text(i18n("artifact.not_used"), "mb-meta", "p")


_MAX_NODES = 40


class ArtifactScreen:
    """An artifact of any trace; those of a run open within the run."""

    def __init__(self, session: PageSession, artifact_id: str) -> None:
        self.session, self.artifact_id = session, artifact_id
        session.layout.crumbs([(session.i18n("nav.runs"), "/runs"), (short_id(artifact_id), "")])
        with box("mb-run-right mb-alone") as place:
            self.part = ScreenSection(session.i18n, place)
            self._graph = ui.html("", sanitize=False).classes("mb-scroll mb-lineage")
            attributes(self._graph, tabindex="0")
            self.panel = ArtifactPanel(session, box("mb-artifact-panel"), LiveArtifacts(session.backend))

    @classmethod
    async def draw(cls, session: PageSession, artifact_id: str) -> None:
        screen = cls(session, artifact_id)
        await screen.part.attempt(screen.refresh)

    async def refresh(self) -> None:
        trace = self.session.query.get("trace")
        await self.panel.show(self.artifact_id, trace)
        query = GetLineage(artifact_id=self.artifact_id, direction="both", depth=10)
        lineage = await self.session.backend.bus.request(query, trace=trace)
        nodes = tuple(node_of(manifest, is_source=False) for manifest in lineage.nodes)
        node_ids = {node.id for node in nodes}
        edges = frozenset(
            (edge.source, edge.target) for edge in lineage.edges if {edge.source, edge.target} <= node_ids
        )
        graph = Graph(nodes, edges).around(self.artifact_id, _MAX_NODES)
        self._graph.set_content(drawing_of(graph, self.artifact_id, self.session.i18n("run.lineage")))
