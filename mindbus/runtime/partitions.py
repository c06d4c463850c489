"""Partitions of a worker's commands, as the settings say."""

from mindbus.bus.worker import Worker
from mindbus.settings import Settings, parse_partitions


class NotPartitionable(ValueError):
    """The commands of this worker cannot be spread over several queues; take it out of MINDBUS_PARTITIONS."""


class NoSuchPartition(ValueError):
    """MINDBUS_PARTITION is the number of one of the queues, from 0, less than their number in MINDBUS_PARTITIONS."""


def partitions_of(worker: Worker, settings: Settings) -> int:
    """Number of queues of a worker's commands. Raises NotPartitionable, NoSuchPartition."""
    count = parse_partitions(settings.partitions).get(worker.name, 1)
    if count > 1 and not (worker.is_partitionable and worker.is_ordered):
        raise NotPartitionable(f"{NotPartitionable.__doc__} ({worker.name})")
    if count > 1 and settings.partition is not None and settings.partition >= count:
        raise NoSuchPartition(f"{NoSuchPartition.__doc__} ({worker.name}={count})")
    return count
