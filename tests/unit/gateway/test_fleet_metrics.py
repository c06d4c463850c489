"""Metrics of a fleet: reports of processes are merged, lies are not believed, ages of queues are found by counting."""

import base64
import zlib
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import Metric

from bus_schema.envelope import Envelope, Kind
from bus_schema.fleet import ProcessMetrics
from gateway.queue_ages import QueueAges
from gateway.reported_metrics import ReportedMetrics
from mindbus.management import QueueState

NOW = datetime(2026, 3, 10, 9, tzinfo=UTC)
SILENT_AFTER = timedelta(seconds=45)
TOLD = """\
# HELP mindbus_handled_total Deliveries by how they ended
# TYPE mindbus_handled_total counter
mindbus_handled_total{service="glm"} 3.0
# HELP mindbus_loop_lag_seconds Lag
# TYPE mindbus_loop_lag_seconds histogram
mindbus_loop_lag_seconds_bucket{le="+Inf"} 2.0
mindbus_loop_lag_seconds_count 2.0
mindbus_loop_lag_seconds_sum 0.5
"""


def packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def a_report(exposition: str, process: str = "glm@here.17", requester: str = "svc.glm") -> Envelope:
    return Envelope(
        id="m1",
        source="/mb/glm/1a2b",
        type=ProcessMetrics.wire.type,
        time=NOW,
        correlationid="m1",
        mbkind=Kind.EVENT,
        mbrequester=requester,
        data={"process": process, "exposition": exposition},
    )


def samples(families: list[Metric]) -> dict[tuple[str, str], float]:
    found = {}
    for family in families:
        for sample in family.samples:
            found[sample.name, sample.labels.get("process", "")] = sample.value
    return found


def test_reports_are_merged_by_process() -> None:
    metrics = ReportedMetrics()
    metrics.record(a_report(packed(TOLD)), NOW)
    metrics.record(a_report(packed(TOLD.replace("3.0", "4.0")), "glm@there.18"), NOW)

    families = metrics.families(NOW + timedelta(seconds=5), SILENT_AFTER)

    told = samples(families)
    assert told["mindbus_handled_total", "glm@here.17"] == 3
    assert told["mindbus_handled_total", "glm@there.18"] == 4
    assert told["mindbus_loop_lag_seconds_sum", "glm@here.17"] == 0.5
    assert told["mindbus_report_age_seconds", "glm@there.18"] == 5
    assert len({family.name for family in families}) == len(families), "one family of each name"


def test_a_process_that_is_silent_is_gone_and_one_that_comes_back_is_there() -> None:
    metrics = ReportedMetrics()
    metrics.record(a_report(packed(TOLD)), NOW)
    later = NOW + timedelta(seconds=46)

    assert samples(metrics.families(later, SILENT_AFTER)) == {}
    metrics.record(a_report(packed(TOLD)), later)
    assert samples(metrics.families(later, SILENT_AFTER))["mindbus_handled_total", "glm@here.17"] == 3


@pytest.mark.parametrize(
    ("exposition", "process", "requester"),
    [
        pytest.param("no base64!", "glm@here.17", "svc.glm", id="not base64"),
        pytest.param(base64.b64encode(b"plain").decode(), "glm@here.17", "svc.glm", id="not deflated"),
        pytest.param(packed("x" * 5_000_000), "glm@here.17", "svc.glm", id="a bomb"),
        pytest.param(packed(TOLD)[:80], "glm@here.17", "svc.glm", id="cut off"),
        pytest.param(packed(TOLD), "storage@here.17", "svc.glm", id="another's name"),
        pytest.param(packed('mindbus_handled_total{service="glm'), "glm@here.17", "svc.glm", id="no metrics"),
    ],
)
def test_what_is_no_report_of_its_sender_is_left_out(exposition: str, process: str, requester: str) -> None:
    metrics = ReportedMetrics()
    metrics.record(a_report(exposition, process, requester), NOW)
    metrics.record(a_report(packed(TOLD), "lsm@here.20", "svc.lsm"), NOW)

    told = samples(metrics.families(NOW, SILENT_AFTER))

    assert {name for name, _ in told} >= {"mindbus_handled_total"}
    assert {process for name, process in told if name == "mindbus_handled_total"} == {"lsm@here.20"}


class Queue:
    """A queue as the management API counts it, looked at every 15 seconds."""

    def __init__(self) -> None:
        self.ages, self.at = QueueAges(), NOW
        self.ready = self.delivered = 0

    def look(self, put: int = 0, taken: int = 0) -> float:
        self.at += timedelta(seconds=15)
        self.ready, self.delivered = self.ready + put - taken, self.delivered + taken
        state = QueueState("mb.q.glm", self.ready, 0, 1, "running", {}, delivered=self.delivered)
        return self.ages.observe([state], self.at)["mb.q.glm"]


def test_a_queue_that_nobody_takes_from_ages() -> None:
    queue = Queue()

    assert [queue.look(put=1), queue.look(), queue.look(put=5), queue.look()] == [0, 15, 30, 45]


def test_the_age_is_that_of_the_first_message_which_is_another_once_it_is_taken() -> None:
    queue = Queue()

    assert [queue.look(put=2), queue.look(put=3), queue.look(taken=1), queue.look(taken=1)] == [0, 15, 30, 30]
    assert [queue.look(taken=2), queue.look(taken=1)] == [45, 0]


def test_a_busy_queue_is_not_old() -> None:
    queue = Queue()
    queue.look(put=10)

    assert [queue.look(put=10, taken=10) for _ in range(20)] == [0] * 20


def test_a_node_that_counts_anew_makes_no_age() -> None:
    queue = Queue()
    queue.look(put=5)
    queue.look(taken=2)
    queue.delivered = 0

    assert queue.look(put=1) == 0


def test_the_memory_of_a_stuck_queue_is_bounded_and_its_age_is_not() -> None:
    queue = Queue()
    aged = [queue.look(put=1) for _ in range(5000)]

    assert aged[-1] == 15 * 4999
    assert len(queue.ages._samples["mb.q.glm"]) < 1000
