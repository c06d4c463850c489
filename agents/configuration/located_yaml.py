"""YAML whose every value knows its line."""

from dataclasses import dataclass, field
from typing import Any

import yaml

YamlPath = tuple[str | int, ...]

_DEEPEST = 10


class InvalidYaml(ValueError):
    """The text cannot be read as one plain YAML document; correct it at the line given."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"{line}: {message}")
        self.line = line
        self.message = message


@dataclass(frozen=True)
class LocatedDocument:
    """A document with the line of each value, by its path; a key's line, where there is one."""

    value: Any
    lines: dict[YamlPath, int] = field(default_factory=dict)

    def line_of(self, place: YamlPath) -> int:
        """The line of a value, or of the nearest that holds it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_located(text: str) -> LocatedDocument:
    """Read one document strictly: no aliases, no duplicate keys. Raises InvalidYaml."""
    try:
        _refuse_traps(text)
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise InvalidYaml(1, "the file is empty")
            lines: dict[YamlPath, int] = {}
            return LocatedDocument(_read(loader, node, (), lines), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        trouble = ", ".join(part for part in (error.context, error.problem) if part)
        raise InvalidYaml(mark.line + 1 if mark else 1, f"not YAML: {trouble}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise InvalidYaml(line, f"not YAML: {error.reason}; remove the control character") from error


def _refuse_traps(text: str) -> None:
    # Before anything is built: aliases can blow a small file up to gigabytes, depth overflows the composer's stack.
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = _line_of(event)
        if isinstance(event, yaml.AliasEvent):
            raise InvalidYaml(line, f"*{event.anchor} repeats another part by reference; write it out instead")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise InvalidYaml(line, f"nested deeper than {_DEEPEST} levels; nothing here needs that")


def _read(loader: yaml.SafeLoader, node: yaml.Node, place: YamlPath, lines: dict[YamlPath, int]) -> Any:
    lines.setdefault(place, _line_of(node))
    if isinstance(node, yaml.MappingNode):
        return _read_mapping(loader, node, place, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_read(loader, item, (*place, number), lines) for number, item in enumerate(node.value)]
    try:
        return loader.construct_object(node)
    except ValueError as error:
        raise InvalidYaml(_line_of(node), f"{node.value[:40]!r} has no value: {error}") from error


def _read_mapping(
    loader: yaml.SafeLoader, node: yaml.MappingNode, place: YamlPath, lines: dict[YamlPath, int]
) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = _line_of(key_node)
        if not isinstance(key_node, yaml.ScalarNode):
            raise InvalidYaml(line, "a field's name is a single word")
        key = str(key_node.value)
        if key in mapping:
            raise InvalidYaml(line, f"{key!r} is given twice; keep one of them")
        lines[*place, key] = line
        mapping[key] = _read(loader, value_node, (*place, key), lines)
    return mapping


def _line_of(part: yaml.Event | yaml.Node) -> int:
    return part.start_mark.line + 1 if part.start_mark else 1
