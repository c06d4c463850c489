"""What of a RabbitMQ installation a node is shown: the plugins that it needs, and Erlang's libraries for them."""

from pathlib import Path

from mindbus_fleet.node.installation import Applications, Installation

PLUGINS = {
    "rabbit": ["kernel", "ra", "ssl"],
    "ra": ["kernel", "rabbit"],
    "rabbitmq_management": ["kernel", "rabbit", "not_there"],
    "rabbitmq_management_agent": ["rabbit"],
    "rabbitmq_shovel": ["rabbit"],
}
LIBRARIES = {"kernel": [], "ssl": ["crypto"], "crypto": ["kernel"], "wx": ["kernel"]}


def make(place: Path, applications: dict[str, list[str]]) -> Path:
    for name, needs in applications.items():
        code = place / f"{name}-3.1" / "ebin"
        code.mkdir(parents=True)
        described = f'{{application, {name}, [\n\t{{vsn, "3.1"}},\n\t{{applications, [{",".join(needs)}]}}\n]}}.'
        (code / f"{name}.app").write_text(described)
    return place


def installed(folder: Path) -> Installation:
    """Programs are linked to from elsewhere, as packages do it."""
    make(folder / "rabbitmq/plugins", PLUGINS)
    make(folder / "erlang/lib", LIBRARIES)
    programs = {"rabbitmq-server": folder / "rabbitmq/sbin", "epmd": folder / "erlang/erts-13/bin"}
    for name, place in programs.items():
        place.mkdir(parents=True)
        (place / name).touch()
        (folder / name).symlink_to(place / name)
    return Installation(folder / "rabbitmq-server", folder / "epmd")


def test_a_plugin_comes_with_all_that_it_needs_and_nothing_else(tmp_path: Path) -> None:
    found = installed(tmp_path).applications("rabbit", "rabbitmq_management")

    assert [each.name for each in found.plugins] == ["ra-3.1", "rabbit-3.1", "rabbitmq_management-3.1"]
    assert [each.name for each in found.libraries] == ["crypto-3.1", "kernel-3.1", "ssl-3.1"]


def test_nothing_is_chosen_where_plugins_are_kept_in_another_way(tmp_path: Path) -> None:
    installation = installed(tmp_path)
    for kept in (tmp_path / "rabbitmq/plugins").iterdir():
        (kept / "ebin" / f"{kept.name.removesuffix('-3.1')}.app").unlink()

    assert installation.applications("rabbit", "rabbitmq_management") == Applications()
    assert Installation(tmp_path / "nowhere", tmp_path / "nowhere").applications("rabbit") == Applications()
