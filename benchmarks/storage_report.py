"""What the rounds of the storage benchmark come to."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

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
            "peers": {name: _small(rounds) | {"durability": _DURABILITY} for name, rounds in self.others.items()},
            "growth_mib": {name: round(mib, 1) for name, mib in self.growth_mib.items()},
            "rounds": len(self.rounds),
        }

    def _way(self, way: str) -> dict[str, Any]:
        names = list(self.rounds[0][way])
        return {
            "mib_per_s": {name: round(median(each[way][name] for each in self.rounds), 1) for name in names},
            "ratios": {
                f"mindbus/{name}": round(median(each[way]["mindbus"] / each[way][name] for each in self.rounds), 2)
                for name in names
                if name != "mindbus"
            },
        }


@dataclass
class StorageReport:
    stores: dict[Store, StoreReport] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {store: report.as_json() for store, report in self.stores.items()}


def as_text(report: StorageReport) -> str:
    """The same for people."""
    lines = []
    for store, found in report.as_json().items():
        lines.append(f"{store}, medians of {found['rounds']} rounds; ratios are medians of the rounds' own")
        for way in ("put", "get"):
            rates = ", ".join(f"{name} {rate} MiB/s" for name, rate in found[way]["mib_per_s"].items())
            ratios = ", ".join(f"{name} {ratio}" for name, ratio in found[way]["ratios"].items())
            lines.append(f"  {way:5} {rates}; {ratios}")
        for part, values in {"small": found["small"], "batched": found["batched"], **found["peers"]}.items():
            lines.append(f"  {part:7} " + ", ".join(f"{name} {value}" for name, value in values.items()))
        lines.append("  grew  " + ", ".join(f"{name} {mib} MiB" for name, mib in found["growth_mib"].items()))
    return "\n".join(lines)


_DURABILITY = "rows synced, files not"


def _small(rounds: list[TookEach]) -> dict[str, Any]:
    return {
        "registered_per_s": _median([each.artifacts / each.seconds for each in rounds]),
        "put_p50_ms": _median([_part(each.put_ms, 0.5) for each in rounds]),
        "put_p99_ms": _median([_part(each.put_ms, 0.99) for each in rounds]),
        **{
            f"{name}_cpu_ms": _median([each.cpu_s[name] / each.artifacts * 1000 for each in rounds])
            for name in rounds[0].cpu_s
        },
    }


def _registering(rounds: list[TookEach]) -> dict[str, float]:
    return {
        "register_p50_ms": _median([_part(each.register_ms, 0.5) for each in rounds]),
        "register_p99_ms": _median([_part(each.register_ms, 0.99) for each in rounds]),
    }


def _part(values: list[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)]


def _median(values: list[float]) -> float:
    return round(median(values), 1)
