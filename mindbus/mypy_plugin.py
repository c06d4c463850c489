"""mypy plugin: the return annotation of a handler must fit the result of its command.

Enable it with `plugins = ["mindbus.mypy_plugin"]`. Without it mypy still refuses what no handler may return, such as a
string or a generator; to tell one model from another it would need a TypeVar whose bound is generic.
"""

from collections.abc import Callable, Iterator

from mypy.maptype import map_instance_to_supertype
from mypy.plugin import FunctionContext, Plugin
from mypy.subtypes import is_subtype
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    TupleType,
    Type,
    TypeVarType,
    UninhabitedType,
    UnionType,
    get_proper_type,
)

_DECORATOR = "mindbus.bus.handlers.on_command"
_COMMAND, _EVENT, _NOTHING = (f"bus_schema.messages.{name}" for name in ("Command", "Event", "Nothing"))
_PUBLISHABLE = {_COMMAND, _EVENT, *(f"mindbus.bus.handlers.{name}" for name in ("Send", "Publish", "PublishTo"))}
_CONTAINERS = {"builtins.list", "builtins.tuple", "typing.Sequence"}


class HandlerPlugin(Plugin):
    """Checks every method decorated with `on_command`."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """The check, where that decorator is called."""
        return _check if fullname == _DECORATOR else None


def plugin(_version: str) -> type[Plugin]:
    """The entry point that mypy calls."""
    return HandlerPlugin


def _check(context: FunctionContext) -> Type:
    method = get_proper_type(context.arg_types[0][0])
    if isinstance(method, CallableType) and len(method.arg_types) > 1:
        result, answer = _result_of(method.arg_types[1]), _awaited_type(method.ret_type)
        if result is not None and answer is not None and not all(_fits(part, result) for part in _alternatives(answer)):
            text = f'"{method.name}" must return {_expected_type(result)}, not "{_name(answer)}"'
            context.api.fail(f"Handler {text}", context.context)
    return context.default_return_type


def _result_of(command: Type) -> Instance | None:
    """R of the Command[R] that a parameter's class derives from."""
    command = get_proper_type(command)
    if not isinstance(command, Instance):
        return None
    base = next((base for base in command.type.mro if base.fullname == _COMMAND), None)
    if base is None:
        return None
    result = get_proper_type(map_instance_to_supertype(command, base).args[0])
    return result if isinstance(result, Instance) else None


def _awaited_type(returned: Type) -> Type | None:
    returned = get_proper_type(returned)
    return returned.args[-1] if isinstance(returned, Instance) and returned.args else None


def _alternatives(answer: Type) -> Iterator[Type]:
    answer = get_proper_type(answer)
    if isinstance(answer, UnionType):
        for item in answer.items:
            yield from _alternatives(item)
    elif isinstance(answer, TypeVarType):
        yield from _alternatives(answer.upper_bound)
    else:
        yield answer


def _fits(answer: Type, result: Instance) -> bool:
    answer = get_proper_type(answer)
    is_nothing = result.type.fullname == _NOTHING
    if isinstance(answer, AnyType | UninhabitedType) or is_subtype(answer, result):
        return not isinstance(answer, NoneType) or is_nothing
    if isinstance(answer, NoneType):
        return is_nothing
    items = _items(answer)
    if items is None:
        return is_nothing and _is_publishable(answer)
    parts = [part for item in items for part in _alternatives(item)]
    is_complete = is_nothing or any(isinstance(part, AnyType) or is_subtype(part, result) for part in parts)
    return is_complete and all(
        isinstance(part, AnyType) or is_subtype(part, result) or _is_publishable(part) for part in parts
    )


def _items(answer: Type) -> list[Type] | None:
    answer = get_proper_type(answer)
    if isinstance(answer, TupleType):
        return list(answer.items)
    if isinstance(answer, Instance) and answer.type.fullname in _CONTAINERS:
        return list(answer.args)
    return None


def _is_publishable(item: Type) -> bool:
    item = get_proper_type(item)
    return isinstance(item, Instance) and any(base.fullname in _PUBLISHABLE for base in item.type.mro)


def _expected_type(result: Instance) -> str:
    if result.type.fullname == _NOTHING:
        return "None, or events and commands to publish"
    return f'"{result.type.name}", or a list or tuple of it with events and commands to publish'


def _name(answer: Type) -> str:
    answer = get_proper_type(answer)
    return answer.type.name if isinstance(answer, Instance) and not answer.args else str(answer)
