"""What the broker is told of queues by their names."""

import re

import pytest

from mindbus.bus.topology import backbone, of_service, rungs_of
from mindbus.runtime.provision import kept_on


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("mb.q.storage", {"delivery-limit": 20}),
        ("mb.q.lsm.3", {"delivery-limit": 20}),
        ("mb.q.storage.events", {"delivery-limit": 20, "message-ttl": 10 * 86_400_000}),
        ("mb.q.storage.dead", {"message-ttl": 20 * 86_400_000}),
        ("mb.q.lost.dead", {"message-ttl": 20 * 86_400_000}),
        ("mb.sub.anna", {}),
        ("mb.retry.1s", {}),
    ],
)
def test_a_deadly_message_is_given_up_and_what_nobody_takes_goes_some_day(
    queue: str, expected: dict[str, object]
) -> None:
    found = [policy.definition for policy in backbone(rungs_of("1s")).policies if re.search(policy.pattern, queue)]

    assert found == ([expected] if expected else [])


def test_queues_are_kept_on_as_many_nodes_as_said() -> None:
    own = of_service("greeter", takes_commands=True, event_keys=("evt.met.#",))
    wanted = backbone(rungs_of("1s")) + own

    assert all("x-quorum-initial-group-size" not in queue.arguments for queue in kept_on(None, wanted).queues)
    sizes = {queue.name: queue.arguments.get("x-quorum-initial-group-size") for queue in kept_on(5, wanted).queues}
    assert {"mb.q.greeter", "mb.q.greeter.events", "mb.q.greeter.dead", "mb.retry.1s"} <= set(sizes)
    assert set(sizes.values()) == {5}
