"""CPU time of processes with all their descendants, from /proc."""

import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# After the command, which may hold blanks: state, ppid, ...; utime and stime are the 12th and 13th.
_PPID, _UTIME, _STIME = 1, 11, 12


def cpu_s(roots: Iterable[int]) -> float:
    """User and system time of the processes and their living descendants so far, in seconds."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            pid = int(folder.name)
            children[int(fields[_PPID])].append(pid)
            ticks[pid] = int(fields[_UTIME]) + int(fields[_STIME])
    found, waiting = set[int](), list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children[pid]
    return sum(ticks.get(pid, 0) for pid in found) / _TICKS_PER_S
