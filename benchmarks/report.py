"""What the rounds come to: medians, and the ratios within a round."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.jobs import CALLERS, NAMES, Name
from benchmarks.measurements import Row

_RATES = ("end_to_end", "consume", "publish")
_CPU = ("end_to_end", "consume", "publish")
_OTHERS: tuple[Name, ...] = ("faststream", "aio_pika")

# None: nobody was sound in any round.
ByName = dict[str, float | None]


@dataclass
class Report:
    """`refused` says which measurements have no number because messages were lost or repeated."""

    rounds: list[dict[Name, Row]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, rows: dict[Name, Row]) -> None:
        """One more round."""
        self.rounds.append(rows)

    def as_json(self) -> dict[str, Any]:
        """Rates per second; medians over the rounds; each ratio is the median of the rounds' own ratios."""
        by_callers = self._by_callers
        return {
            **{rate: self._medians(rate) for rate in _RATES},
            "cpu_us_per_message": {kind: self._medians(f"{kind}_cpu_us") for kind in _CPU},
            "request_p50_ms": by_callers(self._medians, "request_p50_ms"),
            "request_p99_ms": by_callers(self._medians, "request_p99_ms"),
            "idle_worker_rss_mib": self._medians("idle_worker_rss_mib"),
            "ratios": {
                **{rate: self._ratios(rate) for rate in _RATES},
                "cpu_us_per_message": {kind: self._ratios(f"{kind}_cpu_us") for kind in _CPU},
                "request_p50_ms": by_callers(self._ratios, "request_p50_ms"),
                "request_p99_ms": by_callers(self._ratios, "request_p99_ms"),
                "idle_worker_rss_mib": self._ratios("idle_worker_rss_mib"),
            },
            "rounds": len(self.rounds),
            "refused": self.refused,
        }

    def _medians(self, measure: str) -> ByName:
        return {name: _median([row[name][measure] for row in self._whole(measure, name)]) for name in NAMES}

    def _ratios(self, measure: str) -> ByName:
        """MindBus to each of the others, within the same round."""
        return {
            f"mindbus/{other}": _median(
                [row["mindbus"][measure] / row[other][measure] for row in self._whole(measure, "mindbus", other)]
            )
            for other in _OTHERS
        }

    def _by_callers(self, take: Callable[[str], ByName], measure: str) -> dict[str, ByName]:
        return {str(callers): take(f"{measure}_{callers}") for callers in CALLERS}

    def _whole(self, measure: str, *names: Name) -> list[dict[Name, Row]]:
        """The rounds in which none of them was refused."""
        return [row for row in self.rounds if all(measure in row[name] for name in names)]


def as_text(report: Report) -> str:
    """The same as a table for people."""
    found = report.as_json()
    ratios = found["ratios"]
    lines = [f"{'':28}{'mindbus':>12}{'faststream':>12}{'aio_pika':>12}{'to faststr.':>12}{'to aio_pika':>12}"]
    for label, values, relation in [
        *((f"{rate.replace('_', ' ')}, msg/s", found[rate], ratios[rate]) for rate in _RATES),
        *(
            (
                f"{kind.replace('_', ' ')}, CPU us/msg",
                found["cpu_us_per_message"][kind],
                ratios["cpu_us_per_message"][kind],
            )
            for kind in _CPU
        ),
        *(
            (f"request {part}, {callers} callers, ms", found[key][callers], ratios[key][callers])
            for callers in map(str, CALLERS)
            for part, key in (("p50", "request_p50_ms"), ("p99", "request_p99_ms"))
        ),
        ("idle worker, MiB", found["idle_worker_rss_mib"], ratios["idle_worker_rss_mib"]),
    ]:
        cells = [*(_cell(values[name], 1) for name in NAMES)]
        cells += [_cell(relation[f"mindbus/{other}"], 2, "x") for other in _OTHERS]
        lines.append(f"{label:28}{''.join(cells)}")
    lines.append(f"medians of {found['rounds']} rounds; ratios are medians of the rounds' own")
    return "\n".join([*lines, *(f"REFUSED {reason}" for reason in report.refused)])


def _median(values: list[float]) -> float | None:
    return round(median(values), 2) if values else None


def _cell(value: float | None, digits: int, unit: str = "") -> str:
    return f"{'-' if value is None else f'{value:.{digits}f}{unit}':>12}"
