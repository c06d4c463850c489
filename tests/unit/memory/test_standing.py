"""What a pack still states once something was decided otherwise."""

from bus_schema.episodes import Decision, WarmContent
from memory.packing.cold import cold_of, standing

HALL = "We decided to take the hall on Main Street."
RENT = "The rent is 1200 euros."
WARM = WarmContent(
    summary=f"{HALL} {RENT}",
    key_points=(f"Anna: {HALL}", f"Boris: {RENT}"),
    key_point_sources=(("raw_1",), ("raw_2",)),
    decisions=(Decision(text=f"{RENT} {HALL}", raw_log_ids=("raw_1",), superseded_by=("raw_9",)),),
)


def test_a_superseded_decision_is_neither_summary_nor_point() -> None:
    left = standing(WARM)

    assert (left.summary, left.key_points, left.decisions) == (RENT, (f"Boris: {RENT}",), ())
    assert left.key_point_sources == (("raw_2",),)


def test_a_superseded_decision_is_no_headline() -> None:
    points, sources = 6 * WARM.key_points, 6 * WARM.key_point_sources
    long = WARM.model_copy(update={"key_points": points, "key_point_sources": sources})
    stands = long.model_copy(update={"decisions": (long.decisions[0].model_copy(update={"superseded_by": ()}),)})

    assert cold_of(long, 400).headline == RENT
    assert cold_of(stands, 400).headline == HALL
