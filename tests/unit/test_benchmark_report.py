"""Medians over rounds, ratios within them, no number for whoever loses messages."""

from benchmarks.report import Report


def test_a_ratio_is_the_median_of_the_rounds_own_and_not_that_of_the_medians() -> None:
    report = Report()
    for mindbus, faststream in [(100.0, 100.0), (300.0, 100.0), (200.0, 800.0)]:
        report.add({"mindbus": {"consume": mindbus}, "faststream": {"consume": faststream}, "aio_pika": {}})

    found = report.as_json()

    assert found["consume"]["mindbus"] == 200
    assert found["consume"]["faststream"] == 100
    assert found["ratios"]["consume"]["mindbus/faststream"] == 1


def test_whoever_was_refused_has_no_number_in_that_round() -> None:
    report = Report(refused=["round 1, aio_pika, backlog: lost"])
    report.add({"mindbus": {"consume": 100.0}, "faststream": {"consume": 50.0}, "aio_pika": {}})

    found = report.as_json()

    assert found["consume"]["aio_pika"] is None
    assert found["ratios"]["consume"]["mindbus/aio_pika"] is None
    assert found["ratios"]["consume"]["mindbus/faststream"] == 2
    assert found["refused"] == ["round 1, aio_pika, backlog: lost"]
