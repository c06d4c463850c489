"""Addresses of a node, and of all nodes of a cluster."""

import pytest
from pydantic import ValidationError

from mindbus.broker_url import NotAnAddress, endpoints_of, nodes_of, with_login
from mindbus.settings import Settings


@pytest.mark.parametrize(
    ("url", "nodes"),
    [
        ("amqp://h/", ["amqp://h/"]),
        ("amqp://u:p,w@a:1,b,c:3/v?heartbeat=4", [f"amqp://u:p,w@{h}/v?heartbeat=4" for h in ("a:1", "b", "c:3")]),
        ("amqps://[::1]:5671, [::2]/", ["amqps://[::1]:5671/", "amqps://[::2]/"]),
        ("memory://bus", ["memory://bus"]),
    ],
)
def test_each_node_has_an_address_of_its_own(url: str, nodes: list[str]) -> None:
    assert list(nodes_of(url)) == nodes


def test_a_node_without_a_port_has_the_usual_one() -> None:
    assert endpoints_of("amqp://u:p@a,b:7/") == [("a", 5672), ("b", 7)]
    assert endpoints_of("amqps://a/") == [("a", 5671)]


def test_another_login_keeps_all_nodes_and_may_hold_any_letter() -> None:
    assert with_login("amqp://u:p@a:1,b/v?heartbeat=4", "glm", "s/e@c") == "amqp://glm:s%2Fe%40c@a:1,b/v?heartbeat=4"


@pytest.mark.parametrize("url", ["amqp://u:p@a,,b/", "amqp://u:p@a,/"])
def test_a_host_left_out_is_told(url: str) -> None:
    with pytest.raises(NotAnAddress):
        nodes_of(url)
    with pytest.raises(ValidationError, match="a host each"):
        Settings(amqp_url=url)


def test_a_port_that_is_none_is_told_of_any_node() -> None:
    with pytest.raises(ValidationError, match="is not a URL"):
        Settings(amqp_url="amqp://u:p@a:1,b:pass/")
