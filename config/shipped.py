"""Configuration files by name: those of the folder `MINDBUS_CONFIG_DIR` before those that ship with MindBus."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import EntryPoint
from pathlib import Path

# Folders to which the operator may add files; in the others a file takes the place of a shipped one.
EXTENSIBLE = frozenset({"cards", "roles", "subagents", "sim/profiles", "sim/scenarios"})
FOLDERS = ("guides", *sorted(EXTENSIBLE))
SUBAGENT_NAME = r"[a-z][a-z0-9_]{0,50}"
_SUFFIX = ".yaml"


@dataclass(frozen=True)
class ConfigFile:
    """Contents of a configuration file; `source` is its path for error messages."""

    content: bytes
    source: str


def config_folder() -> Path | None:
    """The operator's folder, if there is one."""
    return _folder_at("MINDBUS_CONFIG_DIR")


def _folder_at(variable: str) -> Path | None:
    """A folder that the environment names, in either case as other settings."""
    return next((Path(named) for name, named in os.environ.items() if named and name.upper() == variable), None)


def _own_folders(folder: str) -> Iterator[Path]:
    """The operator's folders of this kind, the first one first."""
    kind = folder.removeprefix("sim/")
    if kind != folder and (own := _folder_at("MINDBUS_SIM_DIR")) is not None:
        yield own / kind
    if (own := config_folder()) is not None:
        yield own / folder


def shipped_names(folder: str) -> tuple[str, ...]:
    """Names of the YAML files in a folder below `config` and those that the operator adds, sorted, no suffix."""
    return tuple(sorted({*_names_shipped(folder), *(_names_added(folder) if folder in EXTENSIBLE else ())}))


def shipped_file(folder: str, name: str) -> bytes:
    """Contents of a YAML file in a folder below `config`. Raises FileNotFoundError, OSError."""
    return config_file(folder, name).content


def config_file(folder: str, name: str, language: str | None = None) -> ConfigFile:
    """The file of this name: the operator's before the shipped one, that of the language before the general one.

    `folder` is empty for files at the top. Raises FileNotFoundError where there is neither; OSError.
    """
    names = [f"{name}.{language}{_SUFFIX}"] if language else []
    for own in _own_folders(folder):
        for path in (own / file_name for file_name in (*names, f"{name}{_SUFFIX}")):
            if path.is_file():
                return ConfigFile(path.read_bytes(), str(path))
    shipped = resources.files("config").joinpath(folder)
    for file_name in names:
        if shipped.joinpath(file_name).is_file():
            return ConfigFile(shipped.joinpath(file_name).read_bytes(), "/".join(("config", folder, file_name)))
    source = "/".join(part for part in ("config", folder, f"{name}{_SUFFIX}") if part)
    return ConfigFile(shipped.joinpath(f"{name}{_SUFFIX}").read_bytes(), source)


def subagent_names() -> frozenset[str]:
    """Names of the sub-agents that have a file, shipped or the operator's."""
    return frozenset(_names_shipped("subagents")) | frozenset(_names_added("subagents"))


def subagent_workers() -> list[EntryPoint]:
    """Entry points for the sub-agents that the operator adds; those that ship have theirs in the package."""
    added = sorted(set(_names_added("subagents")) - set(_names_shipped("subagents")))
    return [
        EntryPoint(f"subagent-{name}", f"workers.subagent_file:{name}", "mindbus.workers")
        for name in added
        if re.fullmatch(SUBAGENT_NAME, name)
    ]


def role_workers() -> list[EntryPoint]:
    """Entry points for the roles that the operator adds; those that ship have theirs in the package."""
    added = sorted(set(_names_added("roles")) - set(_names_shipped("roles")))
    return [
        EntryPoint(name, f"workers.creative:{name}", "mindbus.workers")
        for name in added
        if re.fullmatch(SUBAGENT_NAME, name)
    ]


def own_files() -> Iterator[Path]:
    """YAML files of the operator's folder, relative to it, sorted."""
    own = config_folder()
    if own is not None:
        yield from sorted(path.relative_to(own) for path in own.rglob(f"*{_SUFFIX}"))


@cache
def _names_shipped(folder: str) -> tuple[str, ...]:
    place = resources.files("config").joinpath(folder)
    return tuple(_plain_name(file.name) for file in place.iterdir() if _plain_name(file.name)) if place.is_dir() else ()


def _names_added(folder: str) -> Iterator[str]:
    for own in _own_folders(folder):
        yield from (name for file in own.glob(f"*{_SUFFIX}") if (name := _plain_name(file.name)))


def _plain_name(file_name: str) -> str:
    """The name without the suffix, empty for other files and for those of one language."""
    name = file_name.removesuffix(_SUFFIX)
    return name if name != file_name and "." not in name else ""
