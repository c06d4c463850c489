"""Cost of runs: tokens, calls, seconds and price of what models made, from what is committed with each step."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from bus_schema.artifacts import AIContext
from bus_schema.run_control import CostGroup, CostLine
from bus_schema.runs import Run, Spent, Step


def added(first: Spent, second: Spent) -> Spent:
    """Both together; a price is known where one of them is."""
    prices = [each for each in (first.price, second.price) if each is not None]
    return Spent(
        model_calls=first.model_calls + second.model_calls,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        took_ms=first.took_ms + second.took_ms,
        price=sum(prices) if prices else None,
    )


def spent_for(context: AIContext | None) -> Spent:
    """The cost of one output."""
    if context is None:
        return Spent()
    return Spent(
        model_calls=context.model_calls or 0,
        prompt_tokens=context.prompt_tokens or 0,
        completion_tokens=context.completion_tokens or 0,
        took_ms=context.execution_time_ms or 0,
        price=context.price,
    )


def spent_on(step: Step) -> Spent:
    """The cost of a step over all of its rounds."""
    return added(step.spent_before, spent_for(step.context))


def tokens_of(run: Run) -> int:
    """Tokens that a run's models have used so far."""
    return sum(spent_on(step).tokens for step in run.steps)


def cost_lines(runs: Iterable[Run], by: CostGroup) -> tuple[CostLine, ...]:
    """The cost of runs, added up by step, run, card, starter or day, the dearest first."""
    totals: defaultdict[str, Spent] = defaultdict(Spent)
    counted: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        for key, spent in _spent_by(run, by):
            totals[key] = added(totals[key], spent)
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
        yield (step.of or step.step_id) if by == "step" else _KEYS[by](run), spent_on(step)
