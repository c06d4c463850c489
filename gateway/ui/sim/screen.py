"""The simulation screen: controls, key figures, panels."""

import math
import secrets
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from nicegui.element import Element

from bus_schema.envelope import Envelope
from bus_schema.sim import MAX_SIM_MESSAGES, GetSimStatus, SimState, StartSim, StopSim
from bus_schema.timeline import GetTimeline
from gateway.activity import count_dead
from gateway.api.sim import team_names
from gateway.sim_teams import shipped_scenario, shipped_team
from gateway.ui.components import (
    VALUE,
    Kpi,
    attributes,
    box,
    button,
    choice,
    field,
    icon_button,
    rewrite,
    show_if,
    text,
)
from gateway.ui.page_session import PageSession
from gateway.ui.sections import ScreenSection
from gateway.ui.sim import panels
from gateway.ui.sim.statistics import SimStatistics, checks_of

_FASTEST = 600
_STEPS = 100
_MARKS = (1, 10, 60, 600)


class SimControls:
    """Parameters of the next start."""

    def __init__(
        self,
        session: PageSession,
        place: Element,
        on_team: Callable[[], None],
        on_change: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self.session, self._on_team, self._on_change = session, on_team, on_change
        language = session.i18n.language
        teams = team_names()
        self.team = session.query.get("team") or next(
            (name for name in teams if name.endswith(f"_{language}")), teams[0]
        )
        self.speed, self.seed, self.limit = 60.0, "7", "200"
        i18n = session.i18n
        with place:
            self._state_of_it()
            with box("mb-stack mb-sim-team"):
                text(i18n("sim.team"), "mb-label")
                self._teams = choice(i18n("sim.team"), [(name, name) for name in teams], self.team, self._choose_team)
            self._speed_slider()
            self._seed_and_limit()
            with box("mb-line-x mb-sim-do"):
                self._start = button(i18n("sim.start"), self.start, "mb-primary", "play")
                self._stop = button(i18n("sim.stop"), self.stop, "mb-stop mb-hidden", "stop")

    async def start(self) -> None:
        try:
            limit = int(self.limit) if self.limit else None
            command = StartSim(profiles=self.team, speed=self.speed, seed=int(self.seed or "0"), limit=limit)
        except ValueError:
            self.session.say(self.session.i18n("sim.bad_number", most=self.session.i18n.number(MAX_SIM_MESSAGES)))
            return
        await self._do(self.session.backend.bus.request(command))

    async def stop(self) -> None:
        await self._do(self.session.backend.bus.request(StopSim()), self.session.i18n("sim.stopped"))

    async def _do(self, work: Coroutine[Any, Any, object], done: str = "") -> None:
        if await self.session.attempt(work, done):
            await self._on_change()

    def show_team(self, team: str) -> None:
        self.team = team
        rewrite(self._teams, team)

    def show(self, state: SimState) -> None:
        self._state_text.set_text(self.session.i18n("sim.running" if state.is_running else "sim.idle"))
        self._state.style(f"--c: var(--{'ok' if state.is_running else 't3'})")
        show_if(self._start, not state.is_running)
        show_if(self._stop, state.is_running)
        if state.is_running and state.started_at is not None:
            passed = (datetime.now(UTC) - state.started_at) * (state.speed or 1)
            begin = state.starts_at or state.started_at
            self._clock.set_text(self.session.i18n.time(begin + passed))
            self._day.set_text(self.session.i18n("sim.simulated_day", n=passed.days + 1))

    def _state_of_it(self) -> None:
        i18n = self.session.i18n
        with box("mb-sim-state"):
            with box("mb-tag mb-tint", "span").style("--c: var(--t3)") as self._state:
                box("mb-dot", "i")
                self._state_text = text(i18n("sim.idle"))
            with box("mb-stack"):
                self._clock = text("–", "mb-kpi-value mb-num")
                self._day = text(i18n("sim.simulated"), "mb-label")

    def _seed_and_limit(self) -> None:
        i18n = self.session.i18n
        with box("mb-stack mb-sim-seed"):
            text(i18n("sim.seed"), "mb-label")
            with box("mb-with-button"):
                self._seed = field(i18n("sim.seed"), self.seed, self._set_seed, inputmode="numeric")
                icon_button("dice", i18n("sim.roll"), self._roll)
        with box("mb-stack mb-sim-limit"):
            text(i18n("sim.stop_after"), "mb-label")
            with box("mb-with-unit"):
                field(i18n("sim.stop_after"), self.limit, self._set_limit, inputmode="numeric")
                text(i18n("sim.messages"), "mb-meta")

    def _speed_slider(self) -> None:
        i18n = self.session.i18n
        with box("mb-stack mb-sim-speed"):
            with box("mb-line-x"):
                text(i18n("sim.speed"), "mb-label mb-grow")
                self._speed_text = text("", "mb-num mb-medium")
                self._speed_note = text("", "mb-meta")
            at = _step_of(self.speed)
            slider = attributes(box("mb-range", "input"), type="range", min=0, max=_STEPS, value=at)
            attributes(slider, aria_label=i18n("sim.speed"))
            slider.on("input", lambda event: self._set_speed(float(event.args)), js_handler=VALUE, throttle=0.1)
            with box("mb-marks"):
                for mark in _MARKS:
                    text(f"{mark}×", "mb-cap mb-t3 mb-num").style(f"left: {_step_of(mark)}%")
        self._show_speed()

    def _set_speed(self, step: float) -> None:
        speed = _FASTEST ** (step / _STEPS)
        self.speed = round(speed, 1) if speed < 10 else float(round(speed))
        self._show_speed()

    def _show_speed(self) -> None:
        i18n = self.session.i18n
        self._speed_text.set_text(f"{i18n.number(self.speed, 0 if self.speed == int(self.speed) else 1)}×")
        self._speed_note.set_text(i18n("sim.pace", time=i18n.span(self.speed * 60)))

    def _choose_team(self, team: str) -> None:
        self.team = team
        self.session.remember(team=team)
        self._on_team()

    def _set_seed(self, seed: str) -> None:
        self.seed = seed.strip()

    def _set_limit(self, limit: str) -> None:
        self.limit = limit.strip()

    def _roll(self) -> None:
        self.seed = str(secrets.randbelow(10_000))
        rewrite(self._seed, self.seed)


def _step_of(speed: float) -> int:
    return round(math.log(speed) / math.log(_FASTEST) * _STEPS)


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
            self.people = panels.PeoplePanel(i18n, box("mb-panel mb-sim-people", "section"))
            self.scenario = panels.ScenarioPanel(i18n, box("mb-panel mb-sim-scenario", "section"))
            news = box("mb-panel mb-sim-newspanel", "section")
            self.news = panels.NewsPanel(i18n, session.backend.names, news)
            self.checks = panels.ChecksPanel(i18n, box("mb-panel mb-sim-checks", "section"))
        self._show_team()

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.receive(0.25, screen.receive)
        await screen.refresh()
        screen.tick()
        session.every(1.0, screen.tick)
        session.every(2.0, screen.refresh)

    def receive(self, envelopes: list[Envelope], _has_missed: bool) -> None:
        """Count events; missed ones are read from the timeline at the next load."""
        self.counting.receive(envelopes)

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
        dead = count_dead(self.session.activity.queues)
        self.checks.show(checks_of(i18n, counting, dead), list(counting.seconds))

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
        self.counting.receive(event.envelope for event in events)

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
