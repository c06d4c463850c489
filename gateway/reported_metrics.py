"""Metrics that the worker processes of a fleet report, merged into one exposition."""

import base64
import binascii
import zlib
from collections.abc import Iterator
from datetime import datetime, timedelta

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.fleet import ProcessMetrics
from bus_schema.identities import worker_of
from mindbus.logs import logger

_MAX_BYTES = 4 * 1024**2
_KEPT_FOR = timedelta(hours=1)
_PROCESS = "process"


class UnreadableMetrics(ValueError):
    """A report is no exposition of at most 4 MiB."""


class ReportedMetrics:
    """The last report of each process."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[datetime, bytes]] = {}

    def record(self, envelope: Envelope, now: datetime) -> None:
        """Keep a report, unless it is unreadable or names another worker than its sender."""
        try:
            report = ProcessMetrics.model_validate(envelope.data)
            exposition = _inflated(report.exposition)
        except (ValidationError, UnreadableMetrics) as error:
            logger().warning("unreadable metrics", source=envelope.source, reason=str(error))
            return
        if worker_of(envelope.mbrequester) not in (report.process.partition("@")[0], None):
            logger().warning("metrics of another", process=report.process, by=envelope.mbrequester)
            return
        self._reports[report.process] = now, exposition
        self._reports = {name: kept for name, kept in self._reports.items() if now - kept[0] <= _KEPT_FOR}

    def families(self, now: datetime, silent_after: timedelta) -> list[Metric]:
        """Metrics of processes that are not silent, each sample with its process, and the age of each report.

        May be called in a thread.
        """
        reports = {name: kept for name, kept in self._reports.copy().items() if now - kept[0] <= silent_after}
        families: dict[str, Metric] = {}
        for process, (_, exposition) in reports.items():
            try:
                for found in text_string_to_metric_families(exposition.decode()):
                    _merge(found, process, families)
            except (ValueError, KeyError, IndexError) as error:
                logger().warning("unreadable metrics", process=process, reason=type(error).__name__)
        age = Metric("mindbus_report_age_seconds", "How long ago a process has told its metrics", "gauge")
        for process, (at, _) in reports.items():
            age.add_sample(age.name, {_PROCESS: process}, (now - at).total_seconds())
        return [*families.values(), age]


class Families(Collector):
    """A collector of families that are there already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def _merge(found: Metric, process: str, families: dict[str, Metric]) -> None:
    family = families.setdefault(found.name, Metric(found.name, found.documentation, found.type))
    if family.type != found.type:
        return
    for sample in found.samples:
        # The worker's own label of that name, if it has one, is not lost.
        own = {f"exported_{key}" if key == _PROCESS else key: value for key, value in sample.labels.items()}
        family.add_sample(sample.name, {_PROCESS: process, **own}, sample.value)


def _inflated(text: str) -> bytes:
    """Raises UnreadableMetrics."""
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        inflated.decode()
    except (zlib.error, binascii.Error, UnicodeDecodeError) as error:
        raise UnreadableMetrics(f"{UnreadableMetrics.__doc__} ({error})") from error
    if not inflater.eof:
        raise UnreadableMetrics(UnreadableMetrics.__doc__)
    return inflated
