"""The run screen: live steps, artifacts and their lineage."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from urllib.parse import quote

from nicegui import ui

from bus_schema.envelope import Envelope
from bus_schema.process import StepProgress
from bus_schema.run_control import RunGraph
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from config.recorded_runs import RecordingLabel, shipped_recording
from gateway.ui.components import (
    anchor,
    attributes,
    box,
    figure,
    head,
    icon_button,
    icon_link,
    identifier,
    refill,
    show_if,
    tag,
    text,
)
from gateway.ui.graph import drawing_of
from gateway.ui.i18n import Localizer
from gateway.ui.model_calls import show_calls
from gateway.ui.page_session import PageSession
from gateway.ui.runs.artifact_screen import ArtifactPanel
from gateway.ui.runs.control import RunControls
from gateway.ui.runs.lineage import graph_of_run
from gateway.ui.runs.source import LiveRun, RecordedSource, RunSource
from gateway.ui.runs.steps import OVER, STATUS_COLOURS, StepList
from gateway.ui.sections import ScreenSection

_MAX_NODES = 40
_FIGURES = ("elapsed", "steps", "artifacts", "tokens")


class RunScreen:
    """The selected artifact is kept in the address; a recording has a label instead of buttons."""

    def __init__(self, session: PageSession, run_id: str, source: RunSource, label: RecordingLabel | None) -> None:
        self.session, self.run_id, self.source, self.label = session, run_id, source, label
        self.selected = session.query.get("artifact", "")
        self.notes: dict[str, str] = {}
        self.run: Run | None = None
        self._is_stale = True
        self.controls = RunControls(session, run_id)
        i18n = session.i18n
        with box("mb-run"):
            with box("mb-run-left mb-scroll"):
                with box("mb-run-head"):
                    self._about = box("mb-stack")
                    self._state = box("mb-line-x mb-wrap")
                    with box("mb-figures"):
                        self._figures = {name: figure(i18n(f"run.{name}"), "mb-label") for name in _FIGURES}
                body = box()
                self.part = ScreenSection(i18n, body)
                self.steps = StepList(i18n, body, self._step_actions)
            with box("mb-run-right"):
                self._card = ui.mermaid("graph LR", {"theme": "neutral", "securityLevel": "strict"})
                self._card.classes("mb-scroll mb-card-graph")
                attributes(self._card, tabindex="0")
                self._graph_head()
                self._graph = ui.html("", sanitize=False).classes("mb-scroll mb-lineage")
                attributes(self._graph, tabindex="0")
                self.panel = ArtifactPanel(session, box("mb-artifact-panel"), source)

    @classmethod
    async def draw(cls, session: PageSession, run_id: str) -> None:
        label, recorded = shipped_recording()
        if recorded.run.run_id == run_id:
            screen = cls(session, run_id, RecordedSource(recorded), label)
        else:
            screen = cls(session, run_id, LiveRun(session.backend, run_id), None)
        session.layout.crumbs([(session.i18n("nav.runs"), "/runs"), (run_id, "")])
        session.receive(0.25, screen.receive)
        session.every(1.0, screen.tick)
        await screen.refresh()

    def receive(self, envelopes: list[Envelope], has_missed: bool) -> None:
        for envelope in envelopes:
            if envelope.mbtraceid != self.run_id:
                continue
            self._is_stale = True
            if envelope.type == StepProgress.wire.type:
                data = envelope.data or {}
                self.notes[str(data.get("step_id"))] = str(data.get("note"))
        self._is_stale |= has_missed

    def tick(self) -> Awaitable[None] | None:
        if self._is_stale:
            return self.refresh()
        if self.run is not None and self.run.status not in OVER:
            self._show_steps(self.run)
        return None

    async def refresh(self) -> None:
        self._is_stale = False
        await self.part.attempt(self._refresh, self.run_id)

    def _graph_head(self) -> None:
        i18n = self.session.i18n
        with head(i18n("run.lineage")):
            self._summary = text("", "mb-meta mb-ell mb-grow")
            with box("mb-line-x mb-meta mb-not-phone mb-graph-legend"):
                for look in ("registered", "buffered", "writing"):
                    box(f"mb-swatch mb-{look}", "i")
                    text(i18n(f"run.{look}"))

    async def _refresh(self) -> None:
        run, graph, artifacts = await self.source.state()
        is_new = self.run is None or self.run.status is not run.status
        self.run = run
        if "artifact" not in self.session.query:
            last = run.result or next((step.artifact for step in reversed(run.steps) if step.artifact), None)
            self.selected = last.artifact_id if last and any(m.id == last.artifact_id for m in artifacts) else ""
        if is_new:
            self._show_head(run)
        self._show_steps(run)
        self._show_card(graph)
        i18n, lineage = self.session.i18n, graph_of_run(run, artifacts, graph.card)
        counts = i18n.count("run.count_artifacts", len(artifacts))
        writing = sum(node.look in ("writing", "buffered") for node in lineage.nodes)
        self._summary.set_text(f"{counts} · {i18n.count('run.count_writing', writing)}" if writing else counts)
        self._figures["artifacts"].set_text(i18n.number(len(artifacts)))
        self._graph.set_content(
            drawing_of(lineage.around(self.selected, _MAX_NODES), self.selected, i18n("run.lineage"))
        )
        if self.selected:
            await self.panel.show(self.selected, self.run_id)

    def _show_card(self, graph: RunGraph) -> None:
        """The card as a graph, where the steps do more than follow each other."""
        is_shown = not all(step.is_plain for step in graph.card.steps)
        show_if(self._card, is_shown=is_shown)
        if is_shown and self._card.content != graph.mermaid:
            self._card.set_content(graph.mermaid)

    def _show_head(self, run: Run) -> None:
        i18n = self.session.i18n
        self.session.layout.crumbs([(i18n("nav.runs"), "/runs"), (run.card_name, "")])
        if self.label is not None:
            self._show_label(self.label, run)
        with refill(self._state):
            is_waiting = any(step.status is StepStatus.PENDING_STORAGE for step in run.steps)
            if is_waiting and run.status is RunStatus.RUNNING:
                tag(i18n("run.waits_for_storage"), "warn", dot=True)
            else:
                tag(i18n(f"run.{run.status.value}"), STATUS_COLOURS.get(run.status, ""), dot=True)
            identifier(i18n, run.run_id)
            began = run.started_at
            when = {"date": i18n.date(began, datetime.now(UTC)), "time": i18n.hour(began)}
            text(i18n("run.started", who=run.started_by, **when), "mb-meta mb-run-start", "p")
            with box("mb-line-x mb-run-deeds"):
                if self.label is None:
                    icon_link("timeline", i18n("chat.on_timeline"), f"/timeline?trace={quote(run.run_id)}&range=24h")
                if self.label is not None or self.controls.may_look(run):
                    icon_button("eye", i18n("calls.title"), self._show_calls)
                if self.label is None:
                    self.controls.head(run)
            if run.reason:
                text(run.reason, "mb-meta mb-reason", "p")

    async def _show_calls(self) -> None:
        await show_calls(self.session.i18n, self.source.calls)

    def _step_actions(self, run: Run, step: Step) -> None:
        if self.label is None:
            self.controls.of_step(run, step)

    def _show_label(self, label: RecordingLabel, run: Run) -> None:
        i18n = self.session.i18n
        with refill(self._about):
            text(
                i18n("run.recording", model=label.model, date=i18n.date(run.started_at, datetime.now(UTC))),
                "mb-strong",
                "p",
            )
            text(i18n("run.recording_text", licence=label.licence), "mb-meta", "p")
            text(label.settings, "mb-meta", "p")

    def _show_steps(self, run: Run) -> None:
        i18n, now = self.session.i18n, datetime.now(UTC)
        self.steps.show(run, self.notes, now, self.selected)
        done = sum(step.status is StepStatus.COMPLETED for step in run.steps)
        self._figures["elapsed"].set_text(i18n.clock(((run.finished_at or now) - run.started_at).total_seconds()))
        self._figures["steps"].set_text(f"{done}/{len(run.steps)}")
        told, price = i18n.number(run.spent.tokens), run.spent.price
        self._figures["tokens"].set_text(told if price is None else f"{told} · {i18n.number(round(price, 4))}")


def recorded_link(i18n: Localizer) -> None:
    """A link to the recorded run that ships with MindBus."""
    _label, recorded = shipped_recording()
    anchor(f"/runs/{quote(recorded.run.run_id)}", i18n("runs.recorded"))
