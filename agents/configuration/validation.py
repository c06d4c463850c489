"""YAML files: reading with line numbers, and validation against a schema with problems that name line and remedy."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from config.shipped import ConfigFile, config_file, shipped_names
from mindbus.errors import Rejected

YamlPath = tuple[str | int, ...]
# libyaml reads ten times as fast; a PyYAML that was built without it has no such class.
_FAST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 10
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
# By the types of pydantic's errors.
_PLAINLY = {
    kind: message
    for kinds, message in {
        "missing": "is missing; add it",
        "string_type": "must be text, not {given!r}; put it in quotes",
        "string_pattern_mismatch": "{given!r} has characters that do not fit here; it must match {pattern}",
        "greater_than greater_than_equal less_than_equal finite_number": "{given!r} is out of range; {said}",
        "too_short": "is empty; list at least one",
        "string_too_short": "is empty; say something",
        "bool_parsing bool_type": "must be true or false, not {given!r}",
        "float_parsing float_type": "must be a number, not {given!r}",
        "int_parsing int_type int_from_float": "must be a whole number, not {given!r}",
        "tuple_type": "must be a list; write [name, …] or one `- …` a line",
        "model_type model_attributes_type": "must be a mapping of fields such as `id:`, `role:`, `instructions:`",
    }.items()
    for kind in kinds.split()
}


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


@dataclass(frozen=True)
class YamlProblem:
    """One thing that is wrong; what came by message has no lines."""

    source: str
    line: int | None
    place: YamlPath | str
    message: str

    @property
    def field(self) -> str:
        """The field's path, such as `steps[2].inputs[0]`."""
        if isinstance(self.place, str):
            return self.place
        named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.place)
        return named.removeprefix(".") or "file"

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{where}: {self.field}: {self.message}"


class InvalidFile(Rejected, ValueError):
    """The file cannot be used; each line says where, what is wrong, what to do."""

    def __init__(self, problems: Sequence[YamlProblem]) -> None:
        super().__init__(message="\n".join(map(str, problems)))
        self.problems = tuple(problems)


class UnknownFile(Rejected, LookupError):
    """There is no such file."""

    kind: ClassVar[str]

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(message=f"there is no {self.kind} {name!r}; there are {', '.join(known)}")


def load_shipped(folder: str, name: str, parse: Callable[[bytes, str], T], unknown: type[UnknownFile]) -> T:
    """A file under config/. Raises the error for an unknown name, and whatever `parse` raises."""
    if name not in shipped_names(folder):
        raise unknown(name, shipped_names(folder))
    file = read_config_file(folder, name)
    return parse(file.content, file.source)


def read_config_file(folder: str, name: str, language: str | None = None) -> ConfigFile:
    """A configuration file, the operator's before the shipped one. Raises InvalidFile where it cannot be read."""
    try:
        return config_file(folder, name, language)
    except OSError as error:
        message = f"cannot be read: {error.strerror}; correct its permissions"
        raise InvalidFile(
            [YamlProblem(str(error.filename or f"{folder}/{name}.yaml"), None, "file", message)]
        ) from error


def read_file(text: bytes, source: str, schema: type[M], refusal: type[InvalidFile] = InvalidFile) -> M:
    """Read a model from YAML; `source` is what its errors call it. Raises the refusal with every problem found."""
    return validate_document(read_document(text, source, refusal), source, schema, refusal)


def validate_document(
    document: LocatedDocument, source: str, schema: type[M], refusal: type[InvalidFile] = InvalidFile
) -> M:
    """The model that a document is. Raises the refusal with every problem found."""
    try:
        return schema.model_validate(document.value)
    except ValidationError as error:
        raise refusal(schema_problems(error, source, document.line_of, schema)) from error


def read_document(text: bytes, source: str, refusal: type[InvalidFile] = InvalidFile) -> LocatedDocument:
    """Read YAML whose values know their lines. Raises the refusal."""
    try:
        return read_located(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        problem = YamlProblem(source, line, "file", "is not text in UTF-8; save it in that encoding")
        raise refusal([problem]) from error
    except InvalidYaml as error:
        raise refusal([YamlProblem(source, error.line, "file", error.message)]) from error


def read_located(text: str) -> LocatedDocument:
    """Read one document strictly: no aliases, no duplicate keys. Raises InvalidYaml."""
    if _FAST_LOADER is not yaml.SafeLoader:
        try:
            return _read_located(text, _FAST_LOADER)
        except (yaml.YAMLError, InvalidYaml):
            # What is wrong is said by the slow reader, whose words do not depend on whether libyaml is there.
            pass
    return _read_located(text, yaml.SafeLoader)


def _read_located(text: str, loader_class: type[yaml.SafeLoader]) -> LocatedDocument:
    try:
        _refuse_traps(text, loader_class)
        loader = loader_class(text)
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


def _refuse_traps(text: str, loader_class: type[yaml.SafeLoader]) -> None:
    # Before anything is built: aliases can blow a small file up to gigabytes, depth overflows the composer's stack.
    depth = 0
    for event in yaml.parse(text, Loader=loader_class):
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


def schema_problems(
    invalid: ValidationError, source: str, line_of: Callable[[YamlPath], int], schema: type[BaseModel]
) -> list[YamlProblem]:
    """The schema's own complaints, in words for people who write such files."""
    errors = invalid.errors(include_url=False)
    return [
        YamlProblem(source, line_of(error["loc"]), error["loc"], _plainly(error, schema))
        for error in errors
        # A list whose items are wrong also counts as too short; its items have been named already.
        if not (error["type"] == "too_short" and any(_is_within(other, error) for other in errors))
    ]


def _is_within(other: ErrorDetails, error: ErrorDetails) -> bool:
    return len(other["loc"]) > len(error["loc"]) and other["loc"][: len(error["loc"])] == error["loc"]


def suggestion(word: str, known: Collection[str]) -> str:
    """A guess at what a word was to be, with all that it could be."""
    near = get_close_matches(word, known, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ";"
    return f"{meant} known: {', '.join(sorted(set(known)))}"


def _plainly(error: ErrorDetails, schema: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return f"there is no such field{suggestion(str(error['loc'][-1]), _fields_at(schema, error['loc'][:-1]))}"
    if error["type"] == "too_short" and error["input"]:
        return f"has {error['ctx']['actual_length']}; list at least {error['ctx']['min_length']}"
    said = error["msg"].removeprefix("Input ").removeprefix("Value error, ").lower()
    pattern = error.get("ctx", {}).get("pattern")
    return _PLAINLY.get(error["type"], "{said}").format(given=error["input"], said=said, pattern=pattern)


def _fields_at(schema: type[BaseModel], place: tuple[Any, ...]) -> Collection[str]:
    """The fields that there are at a place, as far as the schema's annotations lead."""
    found: Any = schema
    for part in place:
        if isinstance(found, type) and issubclass(found, BaseModel):
            field = found.model_fields.get(str(part))
            found = field.annotation if field else None
        else:
            found = next(iter(reversed([each for each in get_args(found) if each is not Ellipsis])), None)
        found = _bare(found)
    return found.model_fields if isinstance(found, type) and issubclass(found, BaseModel) else ()


def _bare(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        return next((each for each in get_args(annotation) if each is not type(None)), None)
    return annotation
