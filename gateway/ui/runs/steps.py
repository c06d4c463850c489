"""The steps of a run on a shared time scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.process import Run, Step, StepStatus
from gateway.ui.components import Rows, anchor, attributes, box, short_id, tag, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon

COLOURS = {
    StepStatus.PENDING: "",
    StepStatus.RUNNING: "acc",
    StepStatus.PENDING_STORAGE: "warn",
    StepStatus.COMPLETED: "",
    StepStatus.FAILED: "err",
    StepStatus.CANCELLED: "",
}
_SIGNS = {
    StepStatus.COMPLETED: "check",
    StepStatus.PENDING_STORAGE: "clock",
    StepStatus.FAILED: "close",
    StepStatus.CANCELLED: "stop",
}
_MARKS = 5


@dataclass(frozen=True)
class StepItem:
    """A step at a moment, with the note of its role."""

    run_id: str
    step: Step
    begins: datetime
    ends: datetime
    now: datetime
    note: str = ""
    selected: str = ""


class StepList:
    """Rows of steps with a bar each."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        with place:
            self._scale = attributes(box("mb-scale"), aria_hidden="true")
            self._rows: Rows[StepItem] = Rows(box("mb-steps"), lambda _seen: _Row(i18n))

    def show(self, run: Run, notes: Mapping[str, str], now: datetime, selected: str) -> None:
        ends = run.finished_at or now
        self._scale.clear()
        with self._scale:
            for part in range(_MARKS):
                text(self.i18n.clock((ends - run.started_at).total_seconds() * part / (_MARKS - 1)), "mb-num")
        self._rows.show(
            (
                step.step_id,
                StepItem(run.run_id, step, run.started_at, ends, now, notes.get(step.step_id, ""), selected),
            )
            for step in run.steps
        )


class _Row:
    def __init__(self, i18n: Localizer) -> None:
        self._i18n = i18n
        self._drawn: tuple[object, ...] = ()
        with attributes(box("mb-step"), tabindex="0") as self.element:
            self._sign = box("mb-step-sign")
            with box("mb-stack mb-grow"):
                with box("mb-line-x"):
                    self._name: TextElement = text("", "mb-strong")
                    self._role: TextElement = text("", "mb-t3 mb-ell mb-grow")
                    self._state = box("mb-line-x")
                with box("mb-line-x mb-meta"):
                    self._model: TextElement = text("", "mb-ell mb-grow")
                    self._took: TextElement = text("", "mb-num mb-medium mb-t1")
                with box("mb-gantt"):
                    self._line = box("", "i")
                self._more = box("mb-step-more")

    def show(self, seen: StepItem) -> None:
        i18n, step = self._i18n, seen.step
        attributes(self.element, data_row=step.step_id)
        self._name.set_text(step.step_id)
        self._role.set_text(step.role if step.role != step.step_id else "")
        self._model.set_text(_model_of(i18n, step))
        took = _took_s(seen)
        self._took.set_text(i18n.seconds(took) if took is not None else "")
        self._line.style(replace=_line_style(seen))
        self._line.classes(replace=f"mb-gantt-{step.status.value}")
        drawn = (step.status, step.attempt, step.reason, step.artifact, seen.note, seen.selected)
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
        self._state.clear()
        with self._state:
            if step.status not in (StepStatus.COMPLETED,):
                said = step.status.value if step.status is StepStatus.PENDING_STORAGE else ""
                tag(said or self._i18n(f"step.{step.status.value}"), COLOURS[step.status])

    def _show_more(self, seen: StepItem) -> None:
        i18n, step = self._i18n, seen.step
        self._more.clear()
        with self._more:
            if step.attempt > 1 or (step.reason and step.status is not StepStatus.PENDING_STORAGE):
                said = i18n("step.attempt", n=step.attempt) if step.attempt > 1 else ""
                text(": ".join(part for part in (said, step.reason) if part), "mb-meta mb-t2")
            if step.status is StepStatus.PENDING_STORAGE:
                text(i18n("step.safe"), "mb-safe", "p")
            if seen.note and step.status is StepStatus.RUNNING:
                with box("mb-line-x mb-meta"):
                    text(i18n("step.at_work"), "mb-acc")
                    text(seen.note, "mb-ell")
            if step.artifact is not None:
                _artifact(i18n, seen, step)


def _artifact(i18n: Localizer, seen: StepItem, step: Step) -> None:
    ref = step.artifact
    if ref is None:
        return
    chosen = " mb-chosen" if ref.artifact_id == seen.selected else ""
    with anchor(
        f"/runs/{quote(seen.run_id)}?artifact={quote(ref.artifact_id)}", classes=f"mb-artifact-chip{chosen}"
    ) as made:
        attributes(made, title=ref.artifact_id)
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


def _took_s(seen: StepItem) -> float | None:
    if seen.step.started_at is None:
        return None
    return max(0.0, ((seen.step.finished_at or seen.now) - seen.step.started_at).total_seconds())


def _line_style(seen: StepItem) -> str:
    if seen.step.started_at is None:
        return "display: none"
    whole = max((seen.ends - seen.begins).total_seconds(), 0.001)
    left = max(0.0, (seen.step.started_at - seen.begins).total_seconds() / whole)
    width = min((_took_s(seen) or 0) / whole, 1 - left)
    return f"left: {100 * left:.1f}%; width: max({100 * width:.1f}%, 3px)"
