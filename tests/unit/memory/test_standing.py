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


def test_a_superseded_decision_of_two_words_is_gone_unless_another_one_says_the_same() -> None:
    said, sources = ("Anna: Берём красный.", "Boris: Let's take Friday."), (("raw_1",), ("raw_2",))
    red = Decision(text="Берём красный.", raw_log_ids=("raw_1",), superseded_by=("raw_9",))
    taken = Decision(text=f"{RENT} Let's take Friday.", raw_log_ids=("raw_2",), superseded_by=("raw_9",))
    another = Decision(text="The sofa comes later. Let's take Friday.", raw_log_ids=("raw_3",))
    warm = WarmContent(
        summary=f"Берём красный. {RENT}", key_points=said, key_point_sources=sources, decisions=(red, taken, another)
    )

    left = standing(warm)

    assert (left.summary, left.key_points, left.decisions) == (RENT, said[1:], (another,))


def test_a_superseded_decision_is_no_headline() -> None:
    points, sources = 6 * WARM.key_points, 6 * WARM.key_point_sources
    long = WARM.model_copy(update={"key_points": points, "key_point_sources": sources})
    stands = long.model_copy(update={"decisions": (long.decisions[0].model_copy(update={"superseded_by": ()}),)})

    assert cold_of(long, 400).headline == RENT
    assert cold_of(stands, 400).headline == HALL
