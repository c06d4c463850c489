"""The simulation screen."""

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.envelope import Envelope
from bus_schema.sim import GetSimStatus, SimState
from bus_schema.timeline import GetTimeline
from gateway.ui.components import box, text
from gateway.ui.errors import ScreenSection
from gateway.ui.page_session import PageSession
from gateway.ui.sim.controls import SimControls
from gateway.ui.sim.panels import ChecksPanel, NewsPanel, PeoplePanel, ScenarioPanel, answer_times, dots_panel
from gateway.ui.sim.statistics import SimStatistics, checks_of
from gateway.ui.sim.team import shipped_scenario, shipped_team
from gateway.ui.svg import sparkline

_PAGE = 500
_MAX_PAGES = 20
_FIGURES = (
    ("sent", "acc"),
    ("answers", "acc"),
    ("fragments", "raw"),
    ("processed", "processed"),
    ("notifications", "notification"),
)


class SimScreen:
    """Everything is counted from events on the bus."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        self.counting = SimStatistics()
        self.state = SimState()
        self._shown_id = ""
        i18n = session.i18n
        session.subtitle(i18n("sim.subtitle"))
        with box("mb-sim mb-scroll"):
            controls = box("mb-panel mb-sim-controls", "section")
            self.part = ScreenSection(i18n, controls)
            self.controls = SimControls(session, controls, self._show_team)
            self.controls.after_start = self.refresh
            with box("mb-panel mb-kpis mb-sim-kpis"):
                self._figures = {name: _Figure(i18n(f"sim.{name}"), colour) for name, colour in _FIGURES}
            self.people = PeoplePanel(i18n, box("mb-panel mb-sim-people", "section"))
            self.scenario = ScenarioPanel(i18n, box("mb-panel mb-sim-scenario", "section"))
            self.news = NewsPanel(i18n, box("mb-panel mb-sim-newspanel", "section"))
            with box("mb-panel mb-sim-checks", "section") as checks:
                self.checks = ChecksPanel(i18n, checks)
                self._dots = dots_panel(i18n)
        self._show_team()

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.hear(0.25, screen.hear)
        screen.tick()
        session.every(1.0, screen.tick)
        session.every(2.0, screen.refresh)

    def hear(self, envelopes: list[Envelope], _has_missed: bool) -> None:
        """Count events; missed ones are read from the timeline at the next load."""
        self.counting.hear(envelopes)

    async def refresh(self) -> None:
        await self.part.attempt(self._refresh)

    def tick(self) -> None:
        i18n, counting = self.session.i18n, self.counting
        counting.tick()
        self.controls.show(self.state)
        counts = self.state.counts
        sent = counts.sent if counts else 0
        limit = self.state.limit
        self._figures["sent"].show(
            i18n.number(sent), f"/ {i18n.number(limit)}" if limit else "", sent / limit if limit else None
        )
        for name, value in counting.totals.items():
            note = i18n("sim.of", n=i18n.number(len(counting.wanted))) if name == "notifications" else ""
            self._figures[name].show(i18n.number(value), note, None, counting.curve(name))
        self.people.show(counting.by_user)
        self.news.show(list(counting.news))
        dead = sum(queue.depth for queue in self.session.activity.queues or () if queue.name.endswith(".dead"))
        self.checks.show(checks_of(i18n, counting, dead))
        self._dots.set_content(answer_times(i18n, list(counting.seconds)))

    async def _refresh(self) -> None:
        self.state = await self.session.backend.bus.request(GetSimStatus())
        self._follow_team()
        counts = self.state.counts
        if counts is not None and counts.sim_id != self._shown_id:
            self._shown_id = counts.sim_id
            self.counting = SimStatistics()
            await self._catch_up()

    async def _catch_up(self) -> None:
        query = GetTimeline(since=self.state.started_at, limit=_PAGE)
        events, _ = await self.session.read_timeline(query, _MAX_PAGES)
        self.counting.hear(event.envelope for event in events)

    def _follow_team(self) -> None:
        # A chosen team is shown whatever runs.
        team = self.state.profiles
        if team is not None and team != self.controls.team and "team" not in self.session.query:
            self.controls.show_team(team)
            self._show_team()

    def _show_team(self) -> None:
        team = shipped_team(self.controls.team)
        self.people.show_team(team)
        self.scenario.show(shipped_scenario(team.scenario), team)


class _Figure:
    def __init__(self, label: str, colour: str) -> None:
        with box("mb-kpi"):
            with box("mb-stack mb-grow"):
                text(label, "mb-label")
                with box("mb-kpi-line"):
                    self._value: TextElement = text("0", "mb-kpi-value mb-num")
                    self._note: TextElement = text("", "mb-meta mb-num")
                with box("mb-bar mb-hidden") as self._bar:
                    self._done = box("", "i")
            self._spark = ui.html("", sanitize=False).classes("mb-spark").style(f"color: var(--{colour})")

    def show(self, value: str, note: str, part: float | None, curve: list[float] | None = None) -> None:
        self._value.set_text(value)
        self._note.set_text(note)
        if part is not None:
            self._bar.classes(remove="mb-hidden")
            self._done.style(f"width: {100 * min(part, 1):.0f}%")
        if curve:
            self._spark.set_content(sparkline(curve))
