"""What the broker is told of queues by their names."""

import re

import pytest

from mindbus.bus.topology import backbone, rungs_of


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
