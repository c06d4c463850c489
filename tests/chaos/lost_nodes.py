"""The ways in which a cluster loses a node: killed, frozen, come back with an empty disk."""

from collections.abc import Awaitable, Callable

from mindbus.testing.wait import until
from tests.rabbit_cluster import ClusterNode, RabbitCluster

GoesOn = Callable[[], Awaitable[object]]
_NOTICED_WITHIN_S = 180.0


async def each_in_turn(cluster: RabbitCluster, goes_on: GoesOn) -> None:
    """Kill one node, freeze one, empty the disk of one; `goes_on` returns when work is done meanwhile, and after it."""
    await goes_on()
    await _kill(cluster, goes_on)
    await _freeze(cluster, goes_on)
    await _empty(cluster, goes_on)


async def _kill(cluster: RabbitCluster, goes_on: GoesOn) -> None:
    """End the first node; work is done without it and after it has come back."""
    first = cluster.nodes[0]
    await first.kill()
    await goes_on()
    first.launch()
    await first.ready()
    await _has(cluster, first, is_there=True)
    await goes_on()


async def _freeze(cluster: RabbitCluster, goes_on: GoesOn) -> None:
    """Let the second node stand still, then restart it, as who looks after it would.

    One that goes on by itself after the others have given it up may not find back to them.
    """
    second = cluster.nodes[1]
    second.freeze()
    await _has(cluster, second, is_there=False)
    await goes_on()
    await second.kill()
    second.launch()
    await second.ready()
    await _has(cluster, second, is_there=True)
    await goes_on()


async def _empty(cluster: RabbitCluster, goes_on: GoesOn) -> None:
    """Replace the third node by one with an empty disk."""
    first, _, third = cluster.nodes
    await third.kill()
    await first.ctl("forget_cluster_node", third.name)
    third.lose_disk()
    third.launch()
    await third.ready()
    await goes_on()


async def _has(cluster: RabbitCluster, node: ClusterNode, *, is_there: bool) -> None:
    """Wait until the others have noticed."""

    async def is_noticed() -> bool:
        return (node.name in await cluster.running()) is is_there

    await until(is_noticed, _NOTICED_WITHIN_S, f"{node.name} is {'back' if is_there else 'given up'}")
