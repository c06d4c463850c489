"""The simulation against what queueing theory says of simple cases."""

import pytest

from benchmarks.capacity_model import Cost, CostCurve, Load, Machine, servers_for

SECONDS = 400.0


def costs(**cpu_s: float) -> dict[str, CostCurve]:
    return {"answer": always(Cost(cpu_s=cpu_s))}


def always(cost: Cost) -> CostCurve:
    """The same, however many are under way."""
    return CostCurve(among={1: cost})


def test_one_user_takes_what_an_operation_costs() -> None:
    cost = costs(one=0.06, two=0.04)
    found = Machine(cost, cores=2, seed=1).run([Load(("answer",), users=1)], SECONDS)["answer"]
    assert found.per_s == pytest.approx(10, rel=0.05)


def test_many_users_get_no_more_than_the_busiest_process_serves() -> None:
    found = Machine(costs(one=0.04, two=0.01), cores=4, seed=1).run([Load(("answer",), users=50)], SECONDS)["answer"]
    assert found.per_s == pytest.approx(25, rel=0.05)
    assert found.p50_s == pytest.approx(50 / 25, rel=0.1)


def test_nor_than_the_cores_have_time_for() -> None:
    cost = costs(one=0.02, two=0.02, three=0.02, four=0.02)
    found = Machine(cost, cores=2, seed=1).run([Load(("answer",), users=50)], SECONDS)["answer"]
    assert found.per_s == pytest.approx(2 / 0.08, rel=0.05)


def test_a_pause_of_the_users_leaves_room() -> None:
    found = Machine(costs(one=0.01), cores=1, seed=1).run([Load(("answer",), users=20, think_s=1)], SECONDS)["answer"]
    assert found.per_s == pytest.approx(20 / 1.01, rel=0.05)


def test_a_queue_with_arrivals_by_chance_is_as_long_as_erlang_says() -> None:
    """One server, half busy, times of chance (M/M/1): the mean is twice the service time, the median ln 2 of it."""
    cost = costs(one=0.04)
    found = Machine(cost, cores=1, seed=1).run([Load(("answer",), per_s=12.5)], 4 * SECONDS)["answer"]
    assert found.per_s == pytest.approx(12.5, rel=0.05)
    assert 0.04 < found.p50_s < 0.12


def test_two_kinds_share_the_cores() -> None:
    cost = costs(one=0.02) | {"run": always(Cost(cpu_s={"two": 0.1}))}
    found = Machine(cost, cores=1, seed=1).run([Load(("answer",), users=10), Load(("run",), users=10)], SECONDS)
    spent = found["answer"].per_s * 0.02 + found["run"].per_s * 0.1
    assert spent == pytest.approx(1, rel=0.05)


def test_users_who_do_one_thing_after_another_do_as_much_of_each_as_they_are_said_to() -> None:
    cost = costs(one=0.02) | {"run": always(Cost(cpu_s={"two": 0.1}))}
    found = Machine(cost, cores=1, seed=1).run([Load(("answer",) * 4 + ("run",), users=10)], SECONDS)
    assert found["answer"].per_s == pytest.approx(4 / 0.18, rel=0.05)
    assert found["run"].per_s == pytest.approx(1 / 0.18, rel=0.05)


def test_servers_for_a_load() -> None:
    needed = servers_for({"answer": 30.0}, {"answer": Cost(cpu_s={"one": 0.04, "two": 0.01})}, busy_share=0.6)
    assert needed == {"one": pytest.approx(2.0), "two": pytest.approx(0.5)}


def test_processes_share_a_core_alike_however_much_waits_at_one_of_them() -> None:
    cost = costs(one=0.02) | {"run": always(Cost(cpu_s={"two": 0.02}, messages=8))}
    found = Machine(cost, cores=1, seed=1).run([Load(("answer",), users=20), Load(("run",), users=2)], SECONDS)
    assert found["answer"].per_s == pytest.approx(25, rel=0.05)
    assert found["run"].per_s == pytest.approx(25, rel=0.05)


def test_a_broker_uses_all_cores() -> None:
    found = Machine(costs(broker=0.02), cores=4, seed=1).run([Load(("answer",), users=20)], SECONDS)["answer"]
    assert found.per_s == pytest.approx(4 / 0.02, rel=0.05)


def test_what_is_done_later_needs_cores_as_well() -> None:
    cost = {"answer": Cost(cpu_s={"one": 0.03}, later_cpu_s={"two": 0.03})}
    assert servers_for({"answer": 10.0}, cost, busy_share=0.5) == {"one": pytest.approx(0.6), "two": pytest.approx(0.6)}


def test_and_takes_them_from_what_is_asked_meanwhile() -> None:
    cost = {"answer": always(Cost(cpu_s={"one": 0.02}, later_cpu_s={"two": 0.02}))}
    found = Machine(cost, cores=1, seed=1).run([Load(("answer",), users=10)], SECONDS)["answer"]
    assert found.per_s == pytest.approx(25, rel=0.05)


def test_what_is_written_together_is_paid_once() -> None:
    """A tenth of a second for all that are under way, a hundredth for each."""
    curve = CostCurve(among={n: Cost(cpu_s={"one": 0.01 + 0.1 / n}, messages=2 + 8 / n) for n in (4, 20)})
    for under_way in (1, 4, 10, 20, 100):
        found = curve.at(under_way)
        assert found.cpu_s == {"one": pytest.approx(0.01 + 0.1 / under_way)}
        assert found.messages == pytest.approx(2 + 8 / under_way)
    few, many = (
        Machine({"answer": curve}, cores=1, seed=1).run([Load(("answer",), users=users)], SECONDS)["answer"]
        for users in (2, 40)
    )
    assert many.per_s == pytest.approx(1 / 0.0125, rel=0.05)
    assert few.per_s == pytest.approx(1 / 0.06, rel=0.1)
