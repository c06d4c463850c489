"""Simulated time: quiet hours and gaps of a simulated user, the people of own teams."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from agents.context.preferences import DecisionContext, NotificationPreferences
from agents.people_directory import open_people_directory
from agents.present import SimulatedClock
from agents.sim.scenarios import SimLibrary
from config.shipped import config_file

NIGHT = datetime(2026, 3, 10, 23, tzinfo=UTC)


def test_a_simulated_day_begins_in_the_morning_of_the_zone() -> None:
    clock = SimulatedClock.of(NIGHT, 60, None, "Europe/Moscow")

    assert clock.simulated(NIGHT).isoformat() == "2026-03-11T09:00:00+03:00"
    assert clock.simulated(NIGHT + timedelta(minutes=2)).isoformat() == "2026-03-11T11:00:00+03:00"
    assert clock.real(clock.simulated(NIGHT + timedelta(minutes=7))) == NIGHT + timedelta(minutes=7)


def test_quiet_hours_and_gaps_are_of_simulated_time() -> None:
    habits = NotificationPreferences(gap_minutes=2)
    real = DecisionContext(NIGHT, habits)
    simulated = DecisionContext(NIGHT, habits, simulation=SimulatedClock.of(NIGHT, 60, None, "UTC"))
    at_night = DecisionContext(
        NIGHT + timedelta(minutes=14), habits, simulation=SimulatedClock.of(NIGHT, 60, None, "UTC")
    )

    assert real.end_of_quiet == datetime(2026, 3, 11, 8, tzinfo=UTC)
    assert simulated.end_of_quiet is None
    # 23:00 by its clock; eight o'clock comes nine minutes later.
    assert at_night.end_of_quiet == NIGHT + timedelta(minutes=23)
    assert (real.span(habits.gap), simulated.span(habits.gap)) == (timedelta(minutes=2), timedelta(seconds=2))


def test_a_team_of_ones_own_is_known_once_one_of_it_has_spoken(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    text = config_file("sim/profiles", "team_en").content.decode()
    first = SimLibrary().team("team_en").people[0]
    own = text.replace("name: team_en", "name: crew", 1).replace(f"user_id: {first.user_id}", "user_id: xenia", 1)
    (tmp_path / "profiles/crew.yaml").write_text(own.replace(f"name: {first.name}", "name: Xenia", 1), encoding="utf-8")
    (tmp_path / "profiles/broken.yaml").write_text("- x", encoding="utf-8")
    directory = open_people_directory(None, tmp_path)

    assert directory.is_simulated("xenia")
    colleague = SimLibrary().team("team_en").people[1]
    (mention,) = directory.people(("xenia",)).mentions(f"{colleague.name}, please call")
    assert mention.user_id == colleague.user_id
    assert not open_people_directory(None).is_simulated("xenia")
