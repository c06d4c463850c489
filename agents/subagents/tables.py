"""Reckons with a table: filter, group, then sum, mean, min, max or count; nothing is ever evaluated."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.subagents.table_reading import BadTable, Row, number_of

_SHOWN_GROUPS = 200

Operation = Literal["sum", "mean", "min", "max", "count"]


class Where(BaseModel):
    """A condition that a row has to meet."""

    model_config = ConfigDict(extra="forbid")
    column: str = Field(min_length=1, max_length=200)
    is_: Literal["=", "!=", "<", "<=", ">", ">=", "contains"] = Field(default="=", alias="is")
    value: str | float = Field(description="A number, or a text.")


class Reckoning(BaseModel):
    """What is to be found out."""

    model_config = ConfigDict(extra="forbid")
    operation: Operation
    column: str | None = Field(default=None, max_length=200, description="Whose numbers; not needed to count rows.")
    group_by: str | None = Field(default=None, max_length=200, description="One result for each value of this column.")
    where: list[Where] = Field(default=[], max_length=20, description="Conditions, all of which a row has to meet.")


def reckon(rows: Sequence[Row], wanted: Reckoning) -> str:
    """The result as a line, or as one line for each group. Raises BadTable."""
    known = list(dict.fromkeys(name for row in rows for name in row))
    for name in (wanted.column, wanted.group_by, *(each.column for each in wanted.where)):
        if name is not None and name not in known:
            raise BadTable(f"it has no column {name!r}; its columns are: {', '.join(known[:50])}")
    if wanted.column is None and wanted.operation != "count":
        raise BadTable(f"{wanted.operation} needs a column; the columns are: {', '.join(known[:50])}")
    fitting = [row for row in rows if all(_meets(row, each) for each in wanted.where)]
    if wanted.group_by is None:
        return f"{_name(wanted)} = {_result(fitting, wanted)} ({len(fitting)} of {len(rows)} rows)"
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in fitting:
        groups[_text(row.get(wanted.group_by))].append(row)
    lines = [f"{name}: {_result(grouped, wanted)}" for name, grouped in sorted(groups.items())[:_SHOWN_GROUPS]]
    more = [f"… {len(groups) - _SHOWN_GROUPS} more groups"] if len(groups) > _SHOWN_GROUPS else []
    return "\n".join([f"{_name(wanted)} by {wanted.group_by}:", *lines, *more])


def _meets(row: Row, where: Where) -> bool:
    value = row.get(where.column)
    if where.is_ == "contains":
        return str(where.value).casefold() in _text(value).casefold()
    left, right = number_of(value), number_of(where.value)
    if left is None or right is None:
        return _compared(where.is_, _text(value).casefold(), _text(where.value).casefold())
    return _compared(where.is_, left, right)


def _compared(sign: str, left: Any, right: Any) -> bool:
    outcomes: dict[str, Callable[[], bool]] = {
        "=": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return bool(outcomes[sign]())


def _result(rows: Sequence[Row], wanted: Reckoning) -> str:
    if wanted.operation == "count":
        column = wanted.column
        return str(len(rows) if column is None else sum(_text(row.get(column)) != "" for row in rows))
    given = [row.get(wanted.column or "") for row in rows]
    numbers = [number for number in map(number_of, given) if number is not None]
    if not numbers:
        return "no numbers"
    left_out = sum(_text(value) != "" for value in given) - len(numbers)
    note = f" ({left_out} values that are no numbers left out)" if left_out else ""
    return _written(_reckoned(wanted.operation, numbers)) + note


def _reckoned(operation: Operation, numbers: Sequence[float]) -> float:
    match operation:
        case "min":
            return min(numbers)
        case "max":
            return max(numbers)
        case "mean":
            return _sum(numbers) / len(numbers)
        case _:
            return _sum(numbers)


def _sum(numbers: Iterable[float]) -> float:
    return math.fsum(numbers)


def _written(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.10g}"


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _name(wanted: Reckoning) -> str:
    return f"{wanted.operation} of {wanted.column}" if wanted.column else "count of rows"
