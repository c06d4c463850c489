"""One fault after the other, each met by traffic; what became of the traffic, and when the fleet was well again."""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mindbus.testing.wait import ConditionNotMet, until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed
from tests.chaos.traffic import Operation, Wave

_LOOK_S = 0.2
_OFTEN_EMPTY = ("skipped", "failure", "examples")
_FLOWS_BEFORE_S = 1.0
_EXAMPLES = 5


@dataclass
class Row:
    """One line of the table; a fault that could not be inflicted says why."""

    name: str
    injected: int = 0
    messages: int = 0
    effects: int = 0
    lost: int = 0
    doubled: int = 0
    stuck: int = 0
    recovery_s: float | None = None
    within_s: float = 0.0
    skipped: str = ""
    failure: str = ""
    examples: list[str] = field(default_factory=list)

    @property
    def is_late(self) -> bool:
        return self.recovery_s is not None and self.recovery_s > self.within_s

    def as_json(self) -> dict[str, Any]:
        """Fields of the report; what is empty is left out."""
        return {name: value for name, value in asdict(self).items() if value or name not in _OFTEN_EMPTY}


@dataclass
class Campaign:
    """Inflicts faults on one testbed; `rows` are as of the end of each, until `recount` has had the last look."""

    bed: Testbed
    rows: list[Row] = field(default_factory=list)
    _operations: list[tuple[Row, list[Operation]]] = field(default_factory=list)

    async def suffer(self, name: str, fault: Fault) -> Row:
        """Inflict a fault while traffic flows, wait until all has had its effects or never will."""
        row = Row(name, within_s=fault.recovers_within_s(self.bed.pace))
        self.rows.append(row)
        if absent := [part for part in fault.needs if part in self.bed.missing]:
            row.skipped = "; ".join(f"{part}: {self.bed.missing[part]}" for part in absent)
            return row
        wave = self.bed.new_wave()
        flowing = asyncio.create_task(wave.flow())
        looking = asyncio.create_task(self._look(wave))
        try:
            await self._meet(fault, row, wave, flowing)
        except Exception as error:  # noqa: BLE001  # what one fault brings about must not hide the others
            row.failure, row.recovery_s = repr(error), None
        finally:
            for task in (flowing, looking):
                task.cancel()
            await asyncio.gather(flowing, looking, return_exceptions=True)
        self._operations.append((row, wave.operations))
        try:
            await self._mend(fault, row)
        except Exception as error:  # noqa: BLE001  # the next fault finds the fleet as it is
            row.failure = row.failure or repr(error)
        return row

    async def _meet(self, fault: Fault, row: Row, wave: Wave, flowing: asyncio.Task[None]) -> None:
        await asyncio.sleep(_FLOWS_BEFORE_S)
        row.injected = await fault.inflict(self.bed)
        row.recovery_s = await self._recovery_s(wave)
        wave.fault_is_over = True
        await flowing
        await wave.accepted()
        await self._settled(wave)
        await self._judge(row, wave.operations)

    async def _mend(self, fault: Fault, row: Row) -> None:
        """The next fault is to meet a fleet that is well."""
        if fault.heal is not None:
            await fault.heal(self.bed)
        if row.recovery_s is None:
            await self.bed.restart()

    async def recount(self) -> None:
        """Look at everything once more: what is doubled late is doubled, too."""
        await self.bed.ledger.read()
        for row, operations in self._operations:
            self._count_effects(row, operations)

    def _count_effects(self, row: Row, operations: Sequence[Operation]) -> None:
        counted = {each.key: each.effects(self.bed.ledger) for each in operations}
        row.effects = sum(sum(counts) for counts in counted.values())
        doubled = [each for each in operations if max(counted[each.key]) > 1]
        row.doubled = len(doubled)
        unfinished = [each for each in operations if not all(counted[each.key]) or each.accepted_at is None]
        odd = [*doubled, *unfinished][:_EXAMPLES]
        row.examples = [f"{each.kind} {each.key} {counted[each.key]} {each.refusal}".strip() for each in odd]

    async def _recovery_s(self, wave: Wave) -> float | None:
        """How long until every worker is well, and one operation of each kind that began now is done."""
        began = time.monotonic()
        probes = wave.probe()

        def is_over() -> bool:
            return all(probe.applied_at for probe in probes) and not self.bed.ailing()

        try:
            await until(is_over, self.bed.pace.done_within_s)
        except ConditionNotMet:
            waiting = [probe.kind for probe in probes if not probe.applied_at]
            say(f"    not well: {self.bed.ailing()}, not done: {waiting}")
            return None
        return round(time.monotonic() - began, 1)

    async def _look(self, wave: Wave) -> None:
        while True:
            await self.bed.ledger.read()
            for operation in wave.operations:
                operation.look(self.bed.ledger)
            await asyncio.sleep(_LOOK_S)

    async def _settled(self, wave: Wave) -> None:
        """Wait until all that was accepted is done, for a while."""
        deadline = time.monotonic() + self.bed.pace.done_within_s
        while time.monotonic() < deadline:
            if all(each.applied_at for each in wave.operations if each.accepted_at):
                return
            await asyncio.sleep(_LOOK_S)

    async def _judge(self, row: Row, operations: Sequence[Operation]) -> None:
        held = await self.bed.held()
        row.messages = len(operations)
        self._count_effects(row, operations)
        missing = [each for each in operations if each.accepted_at and not all(each.effects(self.bed.ledger))]
        unanswered = [operation for operation in operations if operation.accepted_at is None]
        # What lies in a queue, or at a handler, is not lost.
        row.lost, at_work = (0, len(missing)) if held else (len(missing), 0)
        row.stuck = at_work + len(unanswered)


def as_text(rows: Sequence[Row]) -> str:
    """The table for people."""
    head = ("fault", "injected", "messages", "effects", "lost", "doubled", "stuck", "recovery, s", "within, s")
    lines = [head, *((row.name, *_cells(row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines if column < len(line)) for column in range(len(head))]
    widths[0] = max(len(row.name) for row in rows)
    return "\n".join(
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(_pairs))
        for _pairs in ([*zip(line, widths, strict=False)] for line in lines)
    )


def _cells(row: Row) -> tuple[str, ...]:
    if row.skipped:
        return (f"left out: {row.skipped.splitlines()[0]}",)
    numbers = (row.injected, row.messages, row.effects, row.lost, row.doubled, row.stuck)
    if row.failure:
        return (f"FAILED: {row.failure}",)
    recovery = "never" if row.recovery_s is None else f"{row.recovery_s:.1f}{' late' if row.is_late else ''}"
    return (*map(str, numbers), recovery, f"{row.within_s:.0f}")


def say(text: str) -> None:
    """To whoever watches; standard output is the report's."""
    print(text, file=sys.stderr, flush=True)
