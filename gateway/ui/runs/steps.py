"""The steps of a run on a shared time scale."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from nicegui.element import Element

from bus_schema.artifacts import ArtifactRef
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from gateway.ui.components import anchor, attributes, box, refill, short_id, tag, text
from gateway.ui.i18n import Localizer
from gateway.ui.rows import Rows
from gateway.ui.svg import icon

OVER = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
STATUS_COLOURS = {
    RunStatus.FAILED: "err",
    RunStatus.RUNNING: "acc",
    RunStatus.STARTING: "acc",
    RunStatus.PAUSED: "warn",
    RunStatus.COMPLETED: "ok",
}
_COLOURS = {StepStatus.RUNNING: "acc", StepStatus.FAILED: "err", StepStatus.WAITING: "warn"}
_SIGNS = {
    StepStatus.COMPLETED: "check",
    StepStatus.PENDING_STORAGE: "clock",
    StepStatus.FAILED: "close",
    StepStatus.CANCELLED: "stop",
    StepStatus.WAITING: "user",
    StepStatus.SKIPPED: "right",
}
StepActions = Callable[[Run, Step], None]
_BY = {True: "step.approved_by", False: "step.rejected_by", None: "step.by"}
# Of steps that no role works on.
_NOBODY = "orchestrator"
_ARTIFACT = "art_"
_MARKS = 5
# A scale of minutes and seconds says nothing of a run that is over so soon.
_SHORT_S = 10
_MISBEHAVIOURS = 3


@dataclass(frozen=True)
class StepItem:
    """A step at a moment, with the note of its role."""

    run: Run
    step: Step
    ends: datetime
    now: datetime
    note: str = ""
    selected: str = ""

    @property
    def took_s(self) -> float | None:
        """Duration so far, in seconds; None before the start."""
        if self.step.started_at is None:
            return None
        return max(0.0, ((self.step.finished_at or self.now) - self.step.started_at).total_seconds())

    @property
    def bar_style(self) -> str:
        """Place of the step's bar on the time scale of the run."""
        if self.step.started_at is None:
            return "display: none"
        total_s = max((self.ends - self.run.started_at).total_seconds(), 0.001)
        offset = max(0.0, (self.step.started_at - self.run.started_at).total_seconds() / total_s)
        width = min((self.took_s or 0) / total_s, 1 - offset)
        return f"left: {100 * offset:.1f}%; width: max({100 * width:.1f}%, 3px)"


class StepList:
    """Rows of steps with a bar each, and with what can be done with them."""

    def __init__(self, i18n: Localizer, place: Element, actions: StepActions) -> None:
        self.i18n = i18n
        with place:
            self._scale = attributes(box("mb-scale"), aria_hidden="true")
            self._rows: Rows[StepItem] = Rows(box("mb-steps"), lambda _seen: _Row(i18n, actions))

    def show(self, run: Run, notes: Mapping[str, str], now: datetime, selected: str) -> None:
        ends = run.finished_at or now
        total_s = (ends - run.started_at).total_seconds()
        written = self.i18n.seconds if total_s < _SHORT_S else self.i18n.clock
        with refill(self._scale):
            for part in range(_MARKS):
                text(written(total_s * part / (_MARKS - 1)), "mb-num")
        self._rows.show(
            (step.step_id, StepItem(run, step, ends, now, notes.get(step.step_id, ""), selected))
            for step in run.steps_in_order
        )


class _Row:
    def __init__(self, i18n: Localizer, actions: StepActions) -> None:
        self._i18n, self._actions = i18n, actions
        self._drawn: tuple[object, ...] = ()
        with attributes(box("mb-step"), tabindex="0") as self.element:
            self._sign = box("mb-step-sign")
            with box("mb-stack mb-grow"):
                with box("mb-line-x"):
                    self._name = text("", "mb-strong")
                    self._role = text("", "mb-t3 mb-ell mb-grow")
                    self._state = box("mb-line-x")
                with box("mb-line-x mb-meta"):
                    self._model = text("", "mb-ell mb-grow")
                    self._took = text("", "mb-num mb-medium mb-t1")
                with box("mb-gantt"):
                    self._line = box("", "i")
                self._more = box("mb-step-more")

    def show(self, seen: StepItem) -> None:
        i18n, step = self._i18n, seen.step
        attributes(self.element, data_row=step.step_id)
        self._name.set_text(step.step_id)
        self._role.set_text(step.role if step.role not in (step.step_id, _NOBODY) else "")
        self._model.set_text(_model_of(i18n, step))
        self._took.set_text(i18n.seconds(seen.took_s) if seen.took_s is not None else "")
        self._line.style(replace=seen.bar_style)
        self._line.classes(replace=f"mb-gantt-{step.status.value}")
        drawn = (
            seen.run.status,
            step.by,
            step.status,
            step.attempt,
            step.reason,
            step.artifact,
            step.round,
            step.misbehaviours,
            seen.note,
            seen.selected,
        )
        if drawn != self._drawn:
            self._drawn = drawn
            self._show_state(step)
            self._show_more(seen)

    def _show_state(self, step: Step) -> None:
        self._sign.clear()
        self._sign.classes(replace=f"mb-step-sign mb-sign-{step.status.value}")
        with self._sign:
            if step.status in _SIGNS:
                icon(_SIGNS[step.status], "mb-i14")
            text(step.status.value, "mb-sr")
        with refill(self._state):
            if step.status is StepStatus.PENDING_STORAGE:
                tag(step.status.value, "warn")
            elif step.status is StepStatus.WAITING and step.due_at is not None:
                tag(self._i18n("step.waits_until", time=self._i18n.time(step.due_at)))
            elif step.status is not StepStatus.COMPLETED:
                tag(self._i18n(f"step.{step.status.value}"), _COLOURS.get(step.status, ""))

    def _show_more(self, seen: StepItem) -> None:
        i18n, step = self._i18n, seen.step
        with refill(self._more):
            if step.round > 1:
                text(i18n("step.round", n=step.round), "mb-meta mb-t2")
            elif step.attempt > 1 or (step.reason and step.status is not StepStatus.PENDING_STORAGE):
                attempt = i18n("step.attempt", n=step.attempt) if step.attempt > 1 else ""
                text(": ".join(part for part in (attempt, step.reason) if part), "mb-meta mb-t2")
            if step.status is StepStatus.PENDING_STORAGE:
                text(i18n("step.safe"), "mb-safe", "p")
            if seen.note and step.status is StepStatus.RUNNING:
                with box("mb-line-x mb-meta"):
                    text(i18n("step.at_work"), "mb-acc")
                    text(seen.note, "mb-ell")
            for each in step.misbehaviours[-_MISBEHAVIOURS:]:
                told = i18n(f"misbehaviour.{each.kind.value}", model=each.model_name)
                text(f"{told}: “{each.words}”" if each.words else told, "mb-meta mb-t2 mb-misbehaviour")
            if step.by is not None:
                text(i18n(_BY[step.approved], who=step.by), "mb-meta mb-t2")
            if step.item and not step.item.startswith(_ARTIFACT):
                text(step.item, "mb-meta mb-t2 mb-ell")
            if step.note:
                text(f"“{step.note}”", "mb-meta mb-t2")
            with box("mb-line-x mb-wrap"):
                if step.artifact is not None:
                    _artifact(i18n, seen, step.artifact)
                self._actions(seen.run, step)


def _artifact(i18n: Localizer, seen: StepItem, ref: ArtifactRef) -> None:
    chosen = " mb-chosen" if ref.artifact_id == seen.selected else ""
    target = f"/runs/{quote(seen.run.run_id)}?artifact={quote(ref.artifact_id)}"
    with attributes(anchor(target, classes=f"mb-artifact-chip{chosen}"), title=ref.artifact_id):
        icon("file", "mb-i14")
        text(short_id(ref.artifact_id), "mb-mono mb-ell")
        text(ref.sha256[:8], "mb-mono mb-t3")
        text(i18n.bytes(ref.size_bytes), "mb-cap mb-t3 mb-num")


def _model_of(i18n: Localizer, step: Step) -> str:
    if step.context is None:
        return ""
    sources = len(step.context.input_artifacts)
    parts = (step.context.model_name or "", i18n.count("step.inputs", sources) if sources else "")
    return " · ".join(part for part in parts if part)
