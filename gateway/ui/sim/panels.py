"""Panels of a simulation: team, scenario, latest events, checks, answer times."""

from collections.abc import Sequence
from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.envelope import Envelope
from gateway.display_names import DisplayNames
from gateway.sim_teams import ShippedScenario, ShippedTeam, TeamMember
from gateway.ui.components import anchor, attributes, box, head, moment, person, refill, scroller, show_if, text, toggle
from gateway.ui.i18n import Localizer
from gateway.ui.rows import RedrawnRow, Rows
from gateway.ui.sim.statistics import SimCheck
from gateway.ui.svg import icon
from gateway.ui.timeline.marks import summary_of


class PeoplePanel:
    """People with the number of their messages."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        with place:
            with head(i18n("sim.profiles")):
                self._team = text("", "mb-meta")
            self._list = scroller("mb-grow")
        self._counts: dict[str, tuple[TextElement, Element]] = {}

    def show_team(self, team: ShippedTeam) -> None:
        self._team.set_text(f"{team.name} · {len(team.people)}")
        with refill(self._list):
            self._counts = {one.user_id: self._person(one) for one in team.people}

    def show(self, by_user: dict[str, int]) -> None:
        largest = max([1, *by_user.values()])
        for user, (sent, bar) in self._counts.items():
            sent.set_text(str(by_user.get(user, 0)))
            bar.style(f"width: {100 * by_user.get(user, 0) / largest:.0f}%")

    def _person(self, one: TeamMember) -> tuple[TextElement, Element]:
        with attributes(anchor(f"/chat?with={quote(one.user_id)}", classes="mb-sim-person"), data_row=one.user_id):
            person(one.user_id, one.name)
            with box("mb-stack mb-grow"):
                text(one.name, "mb-medium mb-ell")
                text(f"{one.role}, {one.character}", "mb-cap mb-t3 mb-ell")
            text(
                ", ".join(self.i18n.named("sim.area", area) for area in one.responsibility),
                "mb-meta mb-ell mb-sim-about",
            )
            with box("mb-bar mb-sim-bar"):
                bar = box("", "i").style("width: 0")
            return text("0", "mb-num mb-sim-sent"), bar


class ScenarioPanel:
    """Events of the scenario."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        with place:
            with head(i18n("sim.scenario")):
                self._name = text("", "mb-meta mb-ell")
            self._list = scroller("mb-grow mb-pad")

    def show(self, scenario: ShippedScenario, team: ShippedTeam) -> None:
        self._name.set_text(self.i18n.count("sim.triggers", len(scenario.triggers)))
        self._list.clear()
        for trigger in scenario.triggers:
            names = [one.name for one in team.responsible_for(trigger.areas)]
            with self._list, box("mb-sim-trigger"):
                box("mb-dot mb-ring mb-t3", "i")
                text(self.i18n.named("sim.trigger", trigger.id), "mb-ell mb-grow")
                text(", ".join(names[:3]), "mb-cap mb-t3 mb-ell")


class NewsPanel:
    """The latest events, newest first."""

    def __init__(self, i18n: Localizer, names: DisplayNames, place: Element) -> None:
        self.i18n, self._names = i18n, names
        with place:
            with head(i18n("sim.news")):
                box("mb-grow")
                anchor("/timeline", i18n("sim.open_timeline"))
            with scroller("mb-grow mb-pad"):
                self._nothing = text(i18n("sim.no_news"), "mb-meta", "p")
                self._rows: Rows[Envelope] = Rows(box(), lambda _: RedrawnRow(box("mb-sim-news mb-new"), self._draw))

    def show(self, events: Sequence[Envelope]) -> None:
        show_if(self._nothing, not events)
        self._rows.show((envelope.id, envelope) for envelope in reversed(events))

    def _draw(self, _row: Element, envelope: Envelope) -> None:
        moment(self.i18n, envelope.time, self.i18n.time(envelope.time))
        text(envelope.service, "mb-medium").style(f"color: var(--{envelope.type.split('.')[2]})")
        text(summary_of(self.i18n, self._names, envelope), "mb-ell mb-t2")


class ChecksPanel:
    """Invariants, of which a broken one turns red and links to its events, and answer times."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        with place:
            with head(i18n("sim.checks")), box("mb-tag mb-tint", "span") as self._tag:
                self._holding = text("")
            self._rows: Rows[SimCheck] = Rows(box("mb-pad"), lambda _check: _CheckRow())
            text(i18n("sim.answer_time"), "mb-label mb-pad-x")
            self._times = ui.html("", sanitize=False).classes("mb-pad-x")

    def show(self, checks: Sequence[SimCheck], times: Sequence[tuple[int, float]]) -> None:
        holding = sum(check.holds for check in checks)
        self._holding.set_text(self.i18n("sim.hold", n=holding, of=len(checks)))
        self._tag.style(f"--c: var(--{'ok' if holding == len(checks) else 'err'})")
        self._rows.show((check.says, check) for check in checks)
        self._times.set_content(answer_times(self.i18n, times))


class _CheckRow:
    def __init__(self) -> None:
        with anchor("/timeline", classes="mb-sim-check") as self.element:
            self._good, self._bad = icon("check", "mb-ok"), icon("alert", "mb-err")
            with box("mb-stack"):
                self._says = text("", "mb-medium")
                self._counted = text("", "mb-cap mb-t3")

    def show(self, check: SimCheck) -> None:
        attributes(self.element, href=check.target)
        show_if(self._good, check.holds)
        show_if(self._bad, not check.holds)
        self._says.set_text(check.says)
        toggle(self._says, "mb-err", is_on=not check.holds)
        self._counted.set_text(check.counted)


def answer_times(i18n: Localizer, points: Sequence[tuple[int, float]]) -> str:
    """Answer times as a scatter plot in SVG."""
    width, height, margin = 220, 140, 40
    slowest = max([1.0, *(seconds for _, seconds in points)])
    last = max([10, *(number for number, _ in points)])
    dots = "".join(
        f'<circle cx="{margin + number / last * (width - margin - 6):.1f}" '
        f'cy="{8 + (1 - seconds / slowest) * (height - 26):.1f}" r="1.8"/>'
        for number, seconds in points
    )
    lines = "".join(
        f'<path d="M{margin} {8 + part * (height - 26):.1f}H{width}" stroke="var(--line)"/>'
        f'<text x="{margin - 5}" y="{12 + part * (height - 26):.1f}" text-anchor="end">'
        f"{i18n.seconds(slowest * (1 - part))}</text>"
        for part in (0, 0.5, 1)
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" class="mb-dots" role="img" aria-label="{i18n("sim.answer_time")}">'
        f'{lines}<g fill="var(--acc)" opacity=".75">{dots}</g>'
        f'<text x="{margin}" y="{height - 2}">0</text>'
        f'<text x="{width}" y="{height - 2}" text-anchor="end">{last}</text></svg>'
    )
