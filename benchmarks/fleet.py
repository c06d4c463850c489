"""`python -m benchmarks.fleet` measures what an idle fleet costs, how soon it comes and goes, commands and screens.

The memory is the proportional set size of all processes of `mindbus up -d`, the broker's included, once they are idle.
The screens are those of `python -m benchmarks.screens`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import screen_data
from benchmarks.rounds import in_turn, middle, shown_span, span
from benchmarks.screens import full_fleet, measure_screens
from benchmarks.servers.cpu_time import cpu_s, descent, pss_mb
from mindbus.logs import configure_logs

# One that reads files, one that asks RabbitMQ's management API, three that ask a worker over the bus.
COMMANDS = {
    "health": ("health", "storage"),
    "queues": ("queues",),
    "artifacts": ("artifacts", "ls"),
    "events": ("events", "--limit", "20"),
    "counters": ("counters", "get", "drafts"),
}
_IDLE_CORES, _LOOK_S, _IDLE_WITHIN_S = 0.25, 2.0, 60.0


@dataclass(frozen=True)
class Extent:
    """Rounds of `up -d` and `down`, how often each command is run in one, rounds of screens, rows to show on them."""

    rounds: int
    calls: int
    screen_rounds: int
    shown: screen_data.Extent


FULL = Extent(rounds=3, calls=5, screen_rounds=3, shown=screen_data.FULL)
BAR = Extent(rounds=1, calls=5, screen_rounds=1, shown=screen_data.FULL)
QUICK = Extent(rounds=1, calls=1, screen_rounds=1, shown=screen_data.QUICK)


@dataclass(frozen=True)
class Shell:
    """The command line on a data folder; nothing of the settings around reaches it."""

    data_dir: Path

    def time_s(self, *arguments: str) -> float:
        """Seconds that a command takes. Raises CalledProcessError where it fails."""
        began = time.perf_counter()
        command = [str(Path(sys.executable).with_name("mindbus")), *arguments, "--json"]
        folder = self.data_dir.parent
        subprocess.run(command, env=self._environment(), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began

    def supervisor(self) -> int:
        """Process id of the running `mindbus up`."""
        return int(self._state()["pid"])

    def gateway_url(self) -> str:
        """Address of the screens."""
        return str(self._state()["gateway_url"])

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.data_dir / "run" / "up.json").read_bytes())
        return state

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
        mine = {"MINDBUS_GATEWAY_PORT": "0", "MINDBUS_GATEWAY_ACCESS": "open"}
        return own | {"MINDBUS_DATA_DIR": str(self.data_dir)} | mine


@dataclass
class Report:
    """Results of each round; memory by process in MB, times in seconds."""

    memory: list[dict[str, float]] = field(default_factory=list)
    up_s: list[float] = field(default_factory=list)
    down_s: list[float] = field(default_factory=list)
    commands_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    screens_s: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Medians over the rounds; `cli_s` is that of the slowest command; `spans` has the lowest and the highest."""
        commands = {name: middle(took, 3) for name, took in self.commands_s.items()}
        names = {name: None for memory in self.memory for name in memory}
        whole = {"idle_pss_mb": [sum(memory.values()) for memory in self.memory], "up_s": self.up_s}
        whole["down_s"] = self.down_s
        slowest = max(commands, key=lambda name: commands[name])
        return {
            **{name: middle(values, 2) for name, values in whole.items()},
            "cli_s": commands[slowest],
            "screens_s": self.screens_s,
            "pss_mb": {name: middle((each.get(name, 0.0) for each in self.memory), 1) for name in names},
            "commands_s": commands,
            "spans": {
                **{name: span(values, 2) for name, values in whole.items()},
                "cli_s": span(self.commands_s[slowest], 3),
            },
            "rounds": len(self.up_s),
        }


def measure(extent: Extent) -> Report:
    """A first start, which makes databases and queues, then the rounds, then the screens of another fleet."""
    report = Report()
    with _folder() as shell:
        _say(f"first start: {shell.time_s('up', '-d'):.1f} s")
        shell.time_s("down")
        for number in range(extent.rounds):
            _round(shell, extent, number, report)
            _say(f"round {number + 1} of {extent.rounds} done")
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as folder, full_fleet(Path(folder), extent.shown) as url:
        report.screens_s = measure_screens(url, rounds=extent.screen_rounds)
    return report


def _round(shell: Shell, extent: Extent, number: int, report: Report) -> None:
    report.up_s.append(shell.time_s("up", "-d"))
    supervisor = shell.supervisor()
    _wait_idle(supervisor)
    report.memory.append(memory_of(supervisor))
    for call in range(extent.calls):
        for name, arguments in in_turn(COMMANDS.items(), number + call):
            report.commands_s[name].append(shell.time_s(*arguments))
    report.down_s.append(shell.time_s("down"))


def memory_of(supervisor: int) -> dict[str, float]:
    """Proportional set size in MB by process: supervisor, broker with its helpers, workers by the first of them."""
    memory: defaultdict[str, float] = defaultdict(float)
    for pid, _ticks in descent([supervisor]):
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        memory["supervisor" if pid == supervisor else _part(arguments)] += pss_mb(pid)
    return dict(memory)


def _part(arguments: list[str]) -> str:
    if "--supervised" not in arguments:
        return "broker"
    names = [name for name in arguments[arguments.index("--supervised") + 1 :] if name]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _wait_idle(supervisor: int) -> None:
    """Until the fleet takes less than a quarter of a core, at most a minute."""
    deadline = time.perf_counter() + _IDLE_WITHIN_S
    while time.perf_counter() < deadline:
        before = cpu_s([supervisor])
        time.sleep(_LOOK_S)
        if cpu_s([supervisor]) - before < _IDLE_CORES * _LOOK_S:
            return


@contextmanager
def _folder() -> Iterator[Shell]:
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as folder:
        shell = Shell(Path(folder) / "data")
        try:
            yield shell
        finally:
            shell.time_s("down")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def as_text(report: dict[str, Any]) -> str:
    """Tables for people."""
    parts = "".join(f"\n    {name:24}{mb:8.1f}" for name, mb in report["pss_mb"].items())
    commands, screens = (
        "".join(f"\n    {name:24}{took:8.3f}" for name, took in report[kind].items())
        for kind in ("commands_s", "screens_s")
    )
    idle, up, down = (
        f"{report[name]:.2f} {shown_span(report['spans'][name])}" for name in ("idle_pss_mb", "up_s", "down_s")
    )
    return (
        f"medians of {report['rounds']} rounds (lowest-highest)\nmemory of an idle fleet, MB {idle}{parts}\n"
        f"mindbus up -d, s {up}\nmindbus down, s {down}\ncommands, s{commands}\nscreens, s{screens}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="every command once: shows that it works")
    size.add_argument("--bar", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, help=f"instead of {FULL.rounds}")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    given = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if given.quick else BAR if given.bar else FULL
    found = measure(replace(extent, rounds=given.rounds or extent.rounds)).as_json()
    print(json.dumps(found, indent=2) if given.json else as_text(found))


if __name__ == "__main__":
    main()
