"""A simulated team of one's own: its people are known, notified, left alone at night by its own clock."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.notification import NotificationGenerated
from bus_schema.sim import GetSimStatus, StartSim
from config.settings import FleetSettings
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime

CAST = ("storage", "history", "tracker", "dialogue", "task_manager", "context", "sim")
PERSON = """  - user_id: {user_id}
    name: {name}
    gender: {gender}
    role: engineer
    character: calm
    responsibility: [{area}]
    openings: ["Ну вот."]
    glad: ["Отлично."]
    upset: ["Плохо."]
    calm: ["Так."]
    closings: ["Пока."]
"""
CREW = "name: crew\nlanguage: ru\nscenario: mill\npeople:\n" + "".join(
    PERSON.format(user_id=user_id, name=name, gender=gender, area=area)
    for user_id, name, gender, area in (("zlata", "Злата", "f", "mill"), ("eldar", "Эльдар", "m", "none"))
)
MILL = """name: mill
language: ru
pace_minutes: 40
triggers:
  - id: order
    areas: [mill]
    slots: {part: [отчёт, договор, смету, план, письмо, справку]}
    stages:
      - feeling: calm
        facts: [["Эльдар, подготовь {part} до пятницы."], ["Мельница работает, {part} у заказчика."]]
"""


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    for kind, name, text in (("profiles", "crew", CREW), ("scenarios", "mill", MILL), ("profiles", "broken", "- x")):
        file = tmp_path / "sim" / kind / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return dialogue_settings(vhost_url, tmp_path, sim_dir=tmp_path / "sim")


def write_quiet_hours(settings: FleetSettings, now: datetime) -> None:
    """Quiet hours that hold for real people now."""
    since, end = ((now + timedelta(hours=hours)).strftime("%H:%M") for hours in (-3, 3))
    habits = f"default: {{quiet_from: '{since}', quiet_until: '{end}', gap_minutes: 0, most_per_hour: 60}}\n"
    Path(settings.habits or "").write_text(habits, encoding="utf-8")


async def generated(team: Runtime) -> list[NotificationGenerated]:
    events = await team.timeline(topics=("notification",))
    return [NotificationGenerated.model_validate(e.envelope.data) for e in events if e.name == "notification_generated"]


@pytest.mark.parametrize(("hours", "is_told"), [(8, True), (0, False)])
async def test_people_of_an_own_team_are_notified_by_the_hours_of_its_clock(
    settings: FleetSettings, utc_now: datetime, hours: int, is_told: bool
) -> None:
    write_quiet_hours(settings, utc_now)
    async with runtime(settings, *CAST) as team:
        order = StartSim(profiles="crew", speed=600, limit=3, starts_at=utc_now + timedelta(hours=hours))
        await team.bus.request(order)
        await team.until_on_timeline("notification_generated")
        decided = "notification_sent" if is_told else "notification.deferred"
        await until(lambda: named(team, decided), 30, f"{decided} is on the timeline")
        messages = await generated(team)
        state = await team.bus.request(GetSimStatus())
        names = {event.name for event in await team.timeline(topics=("notification",))}

    assert {each.to_user for each in messages} == {"eldar"}
    assert state.starts_at == order.starts_at
    assert ("notification_sent" in names) is is_told


async def named(team: Runtime, name: str) -> bool:
    return any(event.name == name for event in await team.timeline(topics=("notification",)))


@pytest.fixture
def utc_now() -> datetime:
    return datetime.now(UTC)
