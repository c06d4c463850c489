"""Rounds: who is first alternates, medians come with what lay apart."""

from benchmarks.dialogue import Report as DialogueReport
from benchmarks.fleet import Report as FleetReport
from benchmarks.rounds import in_turn, middle, span
from benchmarks.storage_report import StorageReport, StoreReport, as_text
from benchmarks.storage_tasks import TookEach


def test_whoever_was_first_is_last_in_the_next_round() -> None:
    names = ("mindbus", "peer", "other")

    assert [in_turn(names, number)[0] for number in range(4)] == ["mindbus", "other", "mindbus", "other"]
    assert sorted(in_turn(names, 1)) == sorted(names)


def test_a_median_comes_with_the_lowest_and_the_highest_round() -> None:
    assert (middle([3, 1, 2], 1), span([3, 1, 2], 1)) == (2, [1, 3])


def took(seconds: float) -> TookEach:
    return TookEach(seconds=seconds, artifacts=100, cpu_s={"agents": 1.0}, put_ms=[1.0, 2.0], register_ms=[1.0])


def test_storage_says_how_mlflow_compares_and_what_it_promises() -> None:
    report = StoreReport(small=[took(1.0), took(2.0), took(4.0)], batched=[took(0.5)] * 3)
    for rate in (100.0, 50.0, 200.0):
        both = {"mindbus": rate, "cp+sha256sum": 100.0}
        report.rounds.append({"put": both, "get": both})
    report.others["mlflow"] = [took(0.5), took(0.5), took(8.0)]

    found = report.as_json()

    assert found["put"]["mib_per_s"]["mindbus"] == 100
    assert found["put"]["mib_per_s_span"]["mindbus"] == [50, 200]
    assert found["put"]["ratios_span"]["mindbus/cp+sha256sum"] == [0.5, 2]
    assert found["small"]["registered_per_s_span"] == [25, 100]
    mlflow = found["peers"]["mlflow"]
    assert mlflow["durability"] == "rows synced, files not"
    assert (mlflow["mindbus_ratio"], mlflow["mindbus_ratio_span"]) == (0.5, [0.25, 2])
    assert (mlflow["mindbus_ratio_batched"], mlflow["mindbus_ratio_batched_span"]) == (1, [1, 16])
    [line] = [line for line in as_text(StorageReport({"files": report})).splitlines() if "mlflow" in line]
    assert "durability rows synced, files not" in line
    assert "mindbus_ratio 0.5 (0.25-2)" in line


def test_dialogue_and_fleet_report_spans_beside_their_medians() -> None:
    talks = DialogueReport(together_per_second=[150.0, 170.0, 160.0]).as_json()
    assert (talks["together_per_second"], talks["spans"]["together_per_second"]) == (160, [150, 170])

    fleet = FleetReport(memory=[{"broker": 100.0}, {"broker": 120.0}], up_s=[4.0, 6.0], down_s=[2.0, 2.0])
    fleet.commands_s["health"] += [0.2, 0.4]
    found = fleet.as_json()
    assert (found["up_s"], found["spans"]["up_s"], found["spans"]["cli_s"]) == (5, [4, 6], [0.2, 0.4])
    assert (found["idle_pss_mb"], found["spans"]["idle_pss_mb"]) == (110, [100, 120])
