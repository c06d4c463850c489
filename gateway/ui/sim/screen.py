"""The simulation screen."""

from bus_schema.envelope import Envelope
from bus_schema.sim import GetSimStatus, SimState
from bus_schema.timeline import GetTimeline
from gateway.ui.activity import count_dead
from gateway.ui.components import Kpi, box
from gateway.ui.page_session import PageSession
from gateway.ui.sections import ScreenSection
from gateway.ui.sim.controls import SimControls
from gateway.ui.sim.panels import ChecksPanel, NewsPanel, PeoplePanel, ScenarioPanel, answer_times, dots_panel
from gateway.ui.sim.statistics import SimStatistics, checks_of
from gateway.ui.sim.team import shipped_scenario, shipped_team

_PAGE = 500
_MAX_PAGES = 20
# Figures with the colours of their sparklines.
_FIGURES = {
    "sent": "acc",
    "answers": "acc",
    "fragments": "raw",
    "processed": "processed",
    "notifications": "notification",
}


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
            self.controls = SimControls(session, controls, self._show_team, self.refresh)
            with box("mb-panel mb-kpis mb-sim-kpis"):
                self._figures = {name: Kpi(i18n(f"sim.{name}"), colour=colour) for name, colour in _FIGURES.items()}
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
        of_limit = f"/ {i18n.number(limit)}" if limit else ""
        self._figures["sent"].show(i18n.number(sent), of_limit, part=sent / limit if limit else None)
        for name, value in counting.totals.items():
            note = i18n("sim.of", n=i18n.number(len(counting.wanted))) if name == "notifications" else ""
            self._figures[name].show(i18n.number(value), note, counting.curve(name))
        self.people.show(counting.by_user)
        self.news.show(list(counting.news))
        self.checks.show(checks_of(i18n, counting, count_dead(self.session.activity.queues)))
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
