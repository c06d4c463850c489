"""The table of benchmarks.memory_recall: memories beside each other."""

from typing import Any

from benchmarks.rounds import shown_span


def as_text(found: dict[str, Any]) -> str:
    """A line for each memory, from the report as JSON."""
    counts = list(next(iter(found["memories"].values()))["recall"])
    lines = [
        f"{found['data']}: {found['turns']} turns, {found['questions']} questions; "
        f"medians of {found['rounds']} rounds (lowest-highest)",
        f"vectors are made beforehand, {found['embedded_per_s']:.0f} turns a second, and are in no row",
        f"{'':28}" + "".join(f"{f'recall@{count}, %':>14}" for count in counts) + f"{'p50, ms':>24}{'p99, ms':>24}"
        f"{'turns stored/s':>28}  durable",
    ]
    for name, row in found["memories"].items():
        recall = "".join(f"{row['recall'][count]:>14}" for count in counts)
        p50, p99, rate = (
            f"{row[key]:.1f} {shown_span(row[f'{key}_span'])}" for key in ("p50_ms", "p99_ms", "stored_per_s")
        )
        lines.append(f"{name:28}{recall}{p50:>24}{p99:>24}{rate:>28}  {row['durability']}")
    if "mindbus lsm" in found["memories"]:
        lines.append("mindbus lsm returns turns of episodes, as many words as so many turns have on average")
    return "\n".join([*lines, *(f"left out: {name}: {reason}" for name, reason in found["left_out"].items())])
