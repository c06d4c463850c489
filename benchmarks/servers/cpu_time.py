"""CPU time and memory of processes with all their descendants, from /proc."""

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
    return sum(ticks for _pid, ticks in descent(roots)) / _TICKS_PER_S


def descent(roots: Iterable[int]) -> list[tuple[int, int]]:
    """The processes and their living descendants, each with its CPU time in ticks."""
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
    found, waiting = dict[int, int](), list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found and pid in ticks:
            found[pid] = ticks[pid]
            waiting += children[pid]
    return list(found.items())


def pss_mb(pid: int) -> float:
    """Proportional set size of a process in MB: pages that it shares with others count in equal parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"process {pid} has no memory of its own")


def peak_mib(pid: int) -> float:
    """The most resident memory that a process has ever had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def memory_mib() -> dict[str, float]:
    """This process in MiB: resident now, of it not mapped from files, the most that was ever resident."""
    names = {"VmRSS:": "resident", "RssAnon:": "private", "VmHWM:": "peak"}
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {names[fields[0]]: round(int(fields[1]) / 1024, 1) for fields in lines if fields and fields[0] in names}
