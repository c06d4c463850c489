"""The runs screen: a table of runs, a dialog to start one."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element

from bus_schema.cards import Parameter
from bus_schema.envelope import Envelope
from bus_schema.ids import mint
from bus_schema.process import ListProcesses
from bus_schema.runs import Run, StepStatus
from gateway.api.runs import StartRunRequest, card_names, parameters_of, start_run
from gateway.ui.components import (
    VALUE,
    anchor,
    attributes,
    box,
    button,
    choice,
    field,
    popup,
    refill,
    show_if,
    tag,
    text,
)
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import PageSession
from gateway.ui.rows import Rows, cell, table
from gateway.ui.runs.run_screen import recorded_link
from gateway.ui.runs.steps import OVER, STATUS_COLOURS
from gateway.ui.sections import EmptyState, ScreenSection

_COMMAND = "mindbus process run article --input brief.md"
_MAX_SHOWN = 50


@dataclass(frozen=True)
class _Seen:
    run: Run
    now: datetime


class RunListScreen:
    def __init__(self, session: PageSession) -> None:
        self.session = session
        self._is_stale = False
        self._runs: list[Run] = []
        i18n = session.i18n
        with session.controls:
            self._new_button()
        with box("mb-runs mb-scroll") as place:
            self.part = ScreenSection(i18n, place)
            with box("mb-panel") as self._panel:
                self._rows: Rows[_Seen] = Rows(table(i18n, _COLUMNS), lambda seen: _Row(i18n, seen))
            self._empty = EmptyState(i18n, "runs", _COMMAND, self._empty_buttons, "runs.empty")

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.receive(0.5, screen.receive)
        await screen.refresh()
        session.every(1.0, screen.tick)
        if session.query.get("new"):
            screen._ask()

    def receive(self, envelopes: list[Envelope], has_missed: bool) -> None:
        self._is_stale |= has_missed or any(envelope.type.startswith("mb.evt.process.") for envelope in envelopes)

    async def tick(self) -> None:
        if self._is_stale:
            await self.refresh()
        elif any(run.status not in OVER for run in self._runs):
            self._show()

    async def refresh(self) -> None:
        self._is_stale = False
        await self.part.attempt(self._refresh)

    async def _refresh(self) -> None:
        self._runs = list((await self.session.backend.bus.request(ListProcesses(limit=_MAX_SHOWN))).items)
        self._show()

    def _show(self) -> None:
        runs, now = self._runs, datetime.now(UTC)
        self._empty.show(is_empty=not runs)
        show_if(self._panel, runs)
        self._rows.show((run.run_id, _Seen(run, run.finished_at or now)) for run in runs)
        self.session.subtitle(self.session.i18n.count("runs.count", len(runs)))

    def _empty_buttons(self) -> None:
        self._new_button()
        recorded_link(self.session.i18n)

    def _new_button(self) -> None:
        button(self.session.i18n("runs.new"), self._ask, "mb-primary", "plus")

    def _ask(self) -> None:
        i18n = self.session.i18n
        cards = card_names()
        form = {"card": cards[0], "brief": ""}

        async def go() -> None:
            if not form["brief"].strip():
                problem.set_text(i18n("runs.no_brief"))
                return
            request = StartRunRequest(
                briefs=[form["brief"]], card_name=form["card"], params=parameters.given, run_id=mint("run")
            )
            if await self.session.attempt(start_run(self.session.backend, request)):
                ui.navigate.to(f"/runs/{request.run_id}")

        def choose(card: str) -> None:
            form.update(card=card)
            parameters.show(card)

        with popup(i18n("runs.new"), "mb-dialog mb-new-run"):
            text(i18n("runs.new"), "", "h2")
            text(i18n("runs.card"), "mb-label")
            choice(i18n("runs.card"), [(card, card) for card in cards], cards[0], choose)
            parameters = _Parameters(box("mb-stack"), cards[0])
            text(i18n("runs.brief"), "mb-label")
            area = attributes(box("mb-input mb-area", "textarea"), rows=7, placeholder=i18n("runs.brief_hint"))
            attributes(area, aria_label=i18n("runs.brief"))
            area.on("input", lambda event: form.update(brief=str(event.args)), js_handler=VALUE)
            _file(i18n, area)
            problem = text("", "mb-err mb-meta")
            with box("mb-actions"):
                button(i18n("runs.start"), go, "mb-primary", "play")


def _file(i18n: Localizer, area: Element) -> None:
    """A text file, which the browser reads into the field, where it can be looked at first."""
    file = attributes(box("mb-file", "input"), type="file", accept=".md,.txt,.markdown,text/*")
    attributes(file, aria_label=i18n("runs.file")).on("change", js_handler=_READ.format(id=area.id))


class _Parameters:
    """Fields for the parameters that a card asks for; one left empty has its default."""

    def __init__(self, place: Element, card: str) -> None:
        self._place = place
        self._values: dict[str, str] = {}
        self.show(card)

    @property
    def given(self) -> dict[str, str]:
        return {name: value for name, value in self._values.items() if value.strip()}

    def show(self, card: str) -> None:
        self._values.clear()
        with refill(self._place):
            for name, parameter in parameters_of(card).items():
                self._field(name, parameter)

    def _field(self, name: str, parameter: Parameter) -> None:
        default = "" if parameter.default is None else str(parameter.default)
        text(f"{name}: {parameter.description}" if parameter.description else name, "mb-label")
        options = ("true", "false") if parameter.type == "boolean" else parameter.choices
        set_value = partial(self._values.__setitem__, name)
        if not options:
            field(name, "", set_value, placeholder=default, maxlength=500)
            return
        chosen = default.lower() if parameter.type == "boolean" and default else default or options[0]
        set_value(chosen)
        choice(name, [(each, each) for each in options], chosen, set_value)


_READ = "(event) => mbReadFile(event.target, {id})"
_COLUMNS = (
    ("runs.card", ""),
    ("runs.state", "mb-fit"),
    ("runs.steps", ""),
    ("runs.by", "mb-fit"),
    ("runs.started", "mb-fit mb-right"),
    ("runs.took", "mb-fit mb-right"),
)


class _Row:
    def __init__(self, i18n: Localizer, seen: _Seen) -> None:
        self._i18n, run = i18n, seen.run
        with attributes(box("mb-run-row", "tr"), data_row=run.run_id) as self.element:
            with box("mb-card-title mb-two", "td"), anchor(f"/runs/{quote(run.run_id)}", classes="mb-stack"):
                text(run.card_name, "mb-medium")
                text(run.run_id, "mb-mono mb-t3 mb-ell")
            self._state = attributes(box("mb-fit", "td"), data_label=i18n("runs.state"))
            self._steps = attributes(box("", "td"), data_label=i18n("runs.steps"))
            cell(i18n, "runs.by", "mb-t2", run.started_by)
            cell(i18n, "runs.started", content=i18n.when(run.started_at, datetime.now(UTC)))
            self._took = cell(i18n, "runs.took")
        self._drawn: object = None

    def show(self, seen: _Seen) -> None:
        run, i18n = seen.run, self._i18n
        self._took.set_text(i18n.clock((seen.now - run.started_at).total_seconds()))
        drawn = (run.status, tuple(step.status for step in run.steps))
        if drawn == self._drawn:
            return
        self._drawn = drawn
        with refill(self._state):
            tag(i18n(f"run.{run.status.value}"), STATUS_COLOURS.get(run.status, ""), dot=True)
        self._steps.clear()
        done = sum(step.status is StepStatus.COMPLETED for step in run.steps)
        with self._steps, box("mb-line-x"):
            with attributes(box("mb-pips"), aria_hidden="true"):
                for step in run.steps:
                    pip = box(f"mb-pip mb-pip-{step.status.value}", "i")
                    attributes(pip, title=f"{step.step_id}: {step.status.value}")
            text(f"{done}/{len(run.steps)}", "mb-meta mb-num")
