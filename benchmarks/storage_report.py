"""What the rounds of the storage benchmark come to."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.rounds import middle, shown_span, span
from benchmarks.storage_tasks import Store, TookEach

# Rate of one direction in MiB/s, by who carried.
Rates = dict[str, float]


@dataclass
class StoreReport:
    """One store's; ratios are medians of the rounds' own."""

    rounds: list[dict[str, Rates]] = field(default_factory=list)
    small: list[TookEach] = field(default_factory=list)
    batched: list[TookEach] = field(default_factory=list)
    others: dict[str, list[TookEach]] = field(default_factory=dict)
    growth_mib: dict[str, float] = field(default_factory=dict)

    def grew(self, name: str, mib: float) -> None:
        self.growth_mib[name] = max(self.growth_mib.get(name, 0.0), mib)

    def as_json(self) -> dict[str, Any]:
        return {
            **{way: self._way(way) for way in ("put", "get")},
            "small": _small(self.small) | _registering(self.small),
            "batched": _small(self.batched),
            "peers": {name: self._peer(rounds) for name, rounds in self.others.items()},
            "growth_mib": {name: round(mib, 1) for name, mib in self.growth_mib.items()},
            "rounds": len(self.rounds),
        }

    def _way(self, way: str) -> dict[str, Any]:
        names = list(self.rounds[0][way])
        rates = {name: [each[way][name] for each in self.rounds] for name in names}
        ratios = {
            f"mindbus/{name}": [each[way]["mindbus"] / each[way][name] for each in self.rounds]
            for name in names
            if name != "mindbus"
        }
        return {
            "mib_per_s": {name: middle(each, 1) for name, each in rates.items()},
            "mib_per_s_span": {name: span(each, 1) for name, each in rates.items()},
            "ratios": {name: middle(each, 2) for name, each in ratios.items()},
            "ratios_span": {name: span(each, 2) for name, each in ratios.items()},
        }

    def _peer(self, rounds: list[TookEach]) -> dict[str, Any]:
        """With its promise, and how much faster MindBus registers: one by one, a batch to a message."""
        found = _small(rounds) | {"durability": _DURABILITY}
        for key, ours in {"ratio": self.small, "ratio_batched": self.batched}.items():
            ratios = [_rate(mine) / _rate(theirs) for mine, theirs in zip(ours, rounds, strict=True)]
            found |= {f"mindbus_{key}": middle(ratios, 2), f"mindbus_{key}_span": span(ratios, 2)}
        return found


@dataclass
class StorageReport:
    stores: dict[Store, StoreReport] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {store: report.as_json() for store, report in self.stores.items()}


def as_text(report: StorageReport) -> str:
    """The same for people."""
    lines = []
    for store, found in report.as_json().items():
        rounds = f"medians of {found['rounds']} rounds (lowest-highest)"
        lines.append(f"{store}, {rounds}; ratios are medians of the rounds' own")
        for way in ("put", "get"):
            rates, ratios = (_with_span(found[way], key) for key in ("mib_per_s", "ratios"))
            lines.append(f"  {way:5} {rates}; {ratios}")
        for part, values in {"small": found["small"], "batched": found["batched"], **found["peers"]}.items():
            lines.append(f"  {part:7} " + ", ".join(_cells(values)))
        lines.append("  grew  " + ", ".join(f"{name} {mib} MiB" for name, mib in found["growth_mib"].items()))
    return "\n".join(lines)


_DURABILITY = "rows synced, files not"


def _with_span(found: dict[str, Any], key: str) -> str:
    spans = found[f"{key}_span"]
    return ", ".join(f"{name} {value} {shown_span(spans[name])}" for name, value in found[key].items())


def _cells(values: dict[str, Any]) -> Iterator[str]:
    """Each value with its span, where it has one."""
    for name, value in values.items():
        if not name.endswith("_span"):
            of_rounds = values.get(f"{name}_span")
            yield f"{name} {value}" + (f" {shown_span(of_rounds)}" if of_rounds else "")


def _rate(took: TookEach) -> float:
    return took.artifacts / took.seconds


def _small(rounds: list[TookEach]) -> dict[str, Any]:
    rates = [_rate(each) for each in rounds]
    return {
        "registered_per_s": middle(rates, 1),
        "registered_per_s_span": span(rates, 1),
        "put_p50_ms": middle((_part(each.put_ms, 0.5) for each in rounds), 1),
        "put_p99_ms": middle((_part(each.put_ms, 0.99) for each in rounds), 1),
        **{
            f"{name}_cpu_ms": middle((each.cpu_s[name] / each.artifacts * 1000 for each in rounds), 2)
            for name in rounds[0].cpu_s
        },
    }


def _registering(rounds: list[TookEach]) -> dict[str, float]:
    return {
        "register_p50_ms": middle((_part(each.register_ms, 0.5) for each in rounds), 1),
        "register_p99_ms": middle((_part(each.register_ms, 0.99) for each in rounds), 1),
    }


def _part(values: list[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)]
