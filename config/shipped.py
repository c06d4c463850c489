"""Files that ship with MindBus: names and contents of process cards, roles, simulation profiles and scenarios."""

from functools import cache
from importlib import resources


@cache
def shipped_names(folder: str) -> tuple[str, ...]:
    """Names of the YAML files in a folder below `config`, sorted, without the suffix."""
    files = resources.files("config").joinpath(folder).iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def shipped_file(folder: str, name: str) -> bytes:
    """Contents of a YAML file in a folder below `config`. Raises FileNotFoundError."""
    return resources.files("config").joinpath(folder, f"{name}.yaml").read_bytes()
