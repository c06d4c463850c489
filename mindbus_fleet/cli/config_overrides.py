"""Check of `doctor` on MINDBUS_CONFIG_DIR: files that replace shipped ones, files that replace nothing, broken ones."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from agents.configuration.prompts import Guide, crafts_of_roles, parse_guide, parse_role
from agents.configuration.validation import InvalidFile, YamlProblem, suggestion
from agents.subagents.files import SubagentFile, parse_subagent
from config.shipped import EXTENSIBLE, config_folder, own_files, shipped_names
from mindbus.cli.errors import UsageError


def own_configuration() -> tuple[Literal["ok", "warning", "failed"], str]:
    """Status and detail: which files are in use; failed where one is broken. Raises OSError."""
    folder = config_folder()
    if folder is None:
        return "ok", "the files that come with MindBus"
    if not folder.is_dir():
        return "failed", f"{folder} is not a folder: correct MINDBUS_CONFIG_DIR"
    used, unused, broken = [], [], []
    for file in own_files():
        parse = _parser_of(file)
        if parse is None:
            unused.append(_unused(file))
            continue
        try:
            _require_name(parse((folder / file).read_bytes(), str(folder / file)), folder / file)
        except InvalidFile as error:
            broken.append(str(error))
        except OSError as error:
            broken.append(f"{folder / file}: cannot be read: {error.strerror}; correct its permissions")
        used.append(file.as_posix())
    if broken:
        return "failed", "\n".join(broken)
    detail = f"in {folder}: {', '.join(used) or 'no file'}"
    return ("warning", f"{detail}; {'; '.join(unused)}") if unused else ("ok", detail)


def require_usable_configuration() -> None:
    """Raises UsageError where a file of the operator's is broken, since the workers that need it would not start."""
    status, detail = own_configuration()
    if status == "failed":
        raise UsageError(detail)


def _parser_of(file: Path) -> Callable[[bytes, str], object] | None:
    """The parser of a file of the folder, None where nothing reads it."""
    folder, name = file.parent.as_posix(), file.name.removesuffix(".yaml")
    if folder == ".":
        return _top_parsers().get(name)
    plain = _without_language(name) if folder in ("guides", "subagents") else name
    return _parsers().get(folder) if plain in shipped_names(folder) else None


# Parsers are imported where there is a file to parse: they bring the agents, half a second of `mindbus up`.
def _top_parsers() -> Mapping[str, Callable[[bytes, str], object]]:
    from agents.configuration.model_roles import parse_models
    from agents.context.preferences import parse_preferences
    from agents.mcp_servers.files import parse_mcp_servers

    return {"habits": parse_preferences, "models": parse_models, "mcp": parse_mcp_servers}


def _parsers() -> Mapping[str, Callable[[bytes, str], object]]:
    from agents.processes.cards import parse_card
    from agents.sim.scenarios import parse_scenario
    from agents.sim.teams import parse_team

    return {
        "guides": parse_guide,
        "roles": parse_role,
        "subagents": parse_subagent,
        "cards": partial(parse_card, roles=crafts_of_roles()),
        "sim/profiles": parse_team,
        "sim/scenarios": parse_scenario,
    }


def _require_name(parsed: object, file: Path) -> None:
    """Raises InvalidFile where the name within is not that of the file."""
    name = _without_language(file.stem)
    if isinstance(parsed, Guide | SubagentFile) and parsed.name != name:
        raise InvalidFile([YamlProblem(str(file), None, ("name",), f"must be {name!r}, like the file")])


def _unused(file: Path) -> str:
    folder = file.parent.as_posix()
    known = (
        _top_parsers()
        if folder == "."
        else shipped_names(folder)
        if folder in _parsers() and folder not in EXTENSIBLE
        else ()
    )
    if not known:
        return f"{file.as_posix()} is read by nothing; folders: {', '.join(_parsers())}"
    name = _without_language(file.name.removesuffix(".yaml"))
    return f"{file.as_posix()} replaces nothing{suggestion(name, known)}"


def _without_language(name: str) -> str:
    stem, _, language = name.rpartition(".")
    return stem if language in ("en", "ru") else name
