"""Cost of runs: tokens, calls, seconds and price of what models made, from what is committed with each step."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from bus_schema.run_control import CostGroup, CostLine
from bus_schema.runs import Run, Spent


def cost_lines(runs: Iterable[Run], by: CostGroup) -> tuple[CostLine, ...]:
    """The cost of runs, added up by step, run, card, starter or day, the dearest first."""
    totals: defaultdict[str, Spent] = defaultdict(Spent)
    counted: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        for key, spent in _spent_by(run, by):
            totals[key] += spent
            counted[key].add(run.run_id)
    lines = (CostLine(key=key, runs=len(counted[key]), spent=spent) for key, spent in totals.items())
    return tuple(sorted(lines, key=lambda line: (-(line.spent.price or 0), -line.spent.tokens, line.key)))


_KEYS: Mapping[str, Callable[[Run], str]] = {
    "run": lambda run: run.run_id,
    "card": lambda run: run.card_name,
    "user": lambda run: run.started_by,
    "day": lambda run: run.started_at.date().isoformat(),
}


def _spent_by(run: Run, by: CostGroup) -> Iterator[tuple[str, Spent]]:
    for step in run.steps:
        yield (step.of or step.step_id) if by == "step" else _KEYS[by](run), step.spent
