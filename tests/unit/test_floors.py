"""A floor is missed by what takes more calibration loops than it may."""

from benchmarks.floors import LIMITS, Floors

MESSAGE, STEP = "bus, a message", "runs, a step"


async def _an_hour() -> tuple[float, ...]:
    return (3600.0,)


async def _a_nanosecond() -> tuple[float, ...]:
    return (1e-9,)


async def test_only_what_is_above_its_limit_is_missed() -> None:
    floors = Floors()

    await floors.add(MESSAGE, measure=_an_hour)
    await floors.add(STEP, measure=_a_nanosecond)

    assert floors.missed() == {MESSAGE}
    assert floors.as_json()["missed"] == [MESSAGE]
    assert floors.loops[MESSAGE] > LIMITS[MESSAGE]
    assert floors.seconds[STEP] == 1e-9


async def test_what_is_missed_is_measured_once_more() -> None:
    floors, taken = Floors(), [3600.0, 1e-9]

    async def measure() -> tuple[float, ...]:
        return (taken.pop(0),)

    await floors.add(MESSAGE, measure=measure)

    assert taken == []
    assert floors.missed() == set()
