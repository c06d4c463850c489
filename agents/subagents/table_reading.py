"""Reads tables: CSV, JSON, numbers as people write them."""

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any

MAX_ROWS = 200_000

Row = Mapping[str, Any]


class BadTable(Exception):
    """The content is no table, or has no such column; the words say which."""


def read_table(content: bytes) -> list[Row]:
    """The rows of a CSV with a line of names, or of a JSON list of objects. Raises BadTable."""
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as not_text:
        raise BadTable("it is no text") from not_text
    if not text:
        raise BadTable("it is empty")
    return _json_rows(text) if text[0] in "[{" else _csv_rows(text)


def number_of(value: object) -> float | None:
    """A number, however people write it: 1 200,50 or 1,200.50; none where it is not one."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    text = "".join(str(value).split()).replace("\u00a0", "")
    if "," in text:
        text = text.replace(",", "") if "." in text or _groups_thousands(text) else text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _groups_thousands(text: str) -> bool:
    head, *rest = text.lstrip("+-").split(",")
    return len(rest) > 1 and 0 < len(head) <= 3 and all(len(part) == 3 for part in rest)


def _json_rows(text: str) -> list[Row]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as broken:
        raise BadTable(f"it is no JSON ({broken})") from broken
    if isinstance(found, dict):
        found = next((each for each in found.values() if isinstance(each, list)), [found])
    rows = [row for row in found if isinstance(row, dict)]
    if not rows or len(rows) != len(found):
        raise BadTable("it is no list of objects")
    return _bounded(rows)


def _csv_rows(text: str) -> list[Row]:
    head = text.partition("\n")[0]
    delimiter = max(",;\t|", key=head.count)
    try:
        reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, restval="")
        rows = [{name: value for name, value in row.items() if name is not None} for row in reader]
    except csv.Error as broken:
        raise BadTable(f"it is no CSV ({broken})") from broken
    if not rows:
        raise BadTable("it has no rows below its names")
    return _bounded(rows)


def _bounded(rows: list[dict[str, Any]]) -> list[Row]:
    if len(rows) > MAX_ROWS:
        raise BadTable(f"it has {len(rows)} rows, {MAX_ROWS} at most can be reckoned with")
    return list(rows)
