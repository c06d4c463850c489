"""Reckons with a table: filter, group, then sum, mean, min, max or count; nothing is ever evaluated."""

import csv
import io
import json
import math
import operator
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_ROWS = 200_000

Row = Mapping[str, Any]
_SHOWN_GROUPS = 200


class InvalidTable(Exception):
    """The content is no table, or has no such column; the words say which."""


def read_table(content: bytes) -> list[Row]:
    """The rows of a CSV with a line of names, or of a JSON list of objects. Raises InvalidTable."""
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidTable("it is not text") from error
    if not text:
        raise InvalidTable("it is empty")
    return _json_rows(text) if text[0] in "[{" else _csv_rows(text)


def number_of(value: object) -> float | None:
    """A number, however people write it: 1 200,50 or 1,200.50; none where it is not one.

    With both signs the later one begins the fraction, as in 1.200,50, too.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    text = "".join(str(value).split()).replace("\u00a0", "")
    if "," in text and "." in text:
        thousands, point = (",", ".") if text.rfind(",") < text.rfind(".") else (".", ",")
        text = text.replace(thousands, "").replace(point, ".")
    elif _groups_thousands(text, ",") or _groups_thousands(text, "."):
        text = text.replace(",", "").replace(".", "")
    else:
        text = text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _groups_thousands(text: str, sign: str) -> bool:
    head, *rest = text.lstrip("+-").split(sign)
    return len(rest) > 1 and 0 < len(head) <= 3 and all(len(part) == 3 for part in rest)


def _json_rows(text: str) -> list[Row]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidTable(f"it is no JSON ({error})") from error
    if isinstance(found, dict):
        found = next((each for each in found.values() if isinstance(each, list)), [found])
    rows = [row for row in found if isinstance(row, dict)]
    if not rows or len(rows) != len(found):
        raise InvalidTable("it is no list of objects")
    return _bounded(rows)


def _csv_rows(text: str) -> list[Row]:
    head = text.partition("\n")[0]
    delimiter = max(",;\t|", key=head.count)
    try:
        reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, restval="")
        rows = [{name: value for name, value in row.items() if name is not None} for row in reader]
    except csv.Error as error:
        raise InvalidTable(f"it is no CSV ({error})") from error
    if not rows:
        raise InvalidTable("it has no rows below its names")
    return _bounded(rows)


def _bounded(rows: list[dict[str, Any]]) -> list[Row]:
    if len(rows) > MAX_ROWS:
        raise InvalidTable(f"it has {len(rows)} rows, {MAX_ROWS} at most can be reckoned with")
    return list(rows)


Operation = Literal["sum", "mean", "min", "max", "count"]
_AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class RowCondition(BaseModel):
    """A condition that a row has to meet."""

    model_config = ConfigDict(extra="forbid")
    column: str = Field(min_length=1, max_length=200)
    is_: Literal["=", "!=", "<", "<=", ">", ">=", "contains"] = Field(default="=", alias="is")
    value: str | float = Field(description="A number, or a text.")


class TableQuery(BaseModel):
    """A computation over a table."""

    model_config = ConfigDict(extra="forbid")
    operation: Operation
    column: str | None = Field(default=None, max_length=200, description="Whose numbers; not needed to count rows.")
    group_by: str | None = Field(default=None, max_length=200, description="One result for each value of this column.")
    where: list[RowCondition] = Field(
        default=[], max_length=20, description="Conditions, all of which a row has to meet."
    )


def run_query(rows: Sequence[Row], wanted: TableQuery) -> str:
    """The result as a line, or as one line for each group. Raises InvalidTable."""
    known = list(dict.fromkeys(name for row in rows for name in row))
    for name in (wanted.column, wanted.group_by, *(each.column for each in wanted.where)):
        if name is not None and name not in known:
            raise InvalidTable(f"it has no column {name!r}; its columns are: {', '.join(known[:50])}")
    if wanted.column is None and wanted.operation != "count":
        raise InvalidTable(f"{wanted.operation} needs a column; the columns are: {', '.join(known[:50])}")
    fitting = [row for row in rows if all(_meets(row, each) for each in wanted.where)]
    if wanted.group_by is None:
        return f"{_name(wanted)} = {_result(fitting, wanted)} ({len(fitting)} of {len(rows)} rows)"
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in fitting:
        groups[_text(row.get(wanted.group_by))].append(row)
    lines = [f"{name}: {_result(grouped, wanted)}" for name, grouped in sorted(groups.items())[:_SHOWN_GROUPS]]
    more = [f"… {len(groups) - _SHOWN_GROUPS} more groups"] if len(groups) > _SHOWN_GROUPS else []
    return "\n".join([f"{_name(wanted)} by {wanted.group_by}:", *lines, *more])


def _meets(row: Row, where: RowCondition) -> bool:
    value = row.get(where.column)
    if where.is_ == "contains":
        return str(where.value).casefold() in _text(value).casefold()
    left, right = number_of(value), number_of(where.value)
    if left is None or right is None:
        return bool(_COMPARISONS[where.is_](_text(value).casefold(), _text(where.value).casefold()))
    return bool(_COMPARISONS[where.is_](left, right))


def _result(rows: Sequence[Row], wanted: TableQuery) -> str:
    if wanted.operation == "count":
        column = wanted.column
        return str(len(rows) if column is None else sum(_text(row.get(column)) != "" for row in rows))
    given = [row.get(wanted.column or "") for row in rows]
    numbers = [number for number in map(number_of, given) if number is not None]
    if not numbers:
        return "no numbers"
    left_out = sum(_text(value) != "" for value in given) - len(numbers)
    note = f" ({left_out} values that are no numbers left out)" if left_out else ""
    return _written(_AGGREGATES[wanted.operation](numbers)) + note


def _written(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.10g}"


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _name(wanted: TableQuery) -> str:
    return f"{wanted.operation} of {wanted.column}" if wanted.column else "count of rows"
