"""Parameters of a card: values given at the start of a run, checked against what the card declares."""

from collections.abc import Mapping

from agents.configuration.validation import suggestion
from agents.processes.conditions import Value
from bus_schema.cards import Card, Parameter
from bus_schema.replies import Code
from mindbus.errors import Rejected

_TRUE, _FALSE = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})


class InvalidParameter(Rejected, ValueError, code=Code.INVALID):
    """The card wants other parameters; give them with `--set name=value`."""


def with_defaults(card: Card, params: Mapping[str, str]) -> dict[str, str]:
    """Parameters of a run: those given, and the defaults of others. Raises InvalidParameter.

    A card that declares none takes any.
    """
    if not card.parameters:
        return dict(params)
    if unknown := next((name for name in params if name not in card.parameters), None):
        raise InvalidParameter(
            message=f"{card.name} has no parameter {unknown!r}{suggestion(unknown, card.parameters)}"
        )
    defaults = {name: as_text(each.default) for name, each in card.parameters.items() if each.default is not None}
    given = defaults | dict(params)
    for name, parameter in card.parameters.items():
        if name not in given:
            about = f" ({parameter.description})" if parameter.description else ""
            raise InvalidParameter(message=f"{card.name} needs the parameter {name!r}{about}: --set {name}=…")
        if problem := problem_with(parameter, given[name]):
            raise InvalidParameter(message=f"the parameter {name!r} of {card.name} {problem}")
    return given


def problem_with(parameter: Parameter, text: str) -> str | None:
    """Why a text is no value of a parameter; None where it is one."""
    if parameter.choices and text not in parameter.choices:
        return f"is one of {', '.join(parameter.choices)}, not {text!r}"
    try:
        _parse(parameter, text)
    except ValueError:
        return f"is {_KINDS[parameter.type]}, not {text!r}"
    return None


def value_of(card: Card, params: Mapping[str, str], name: str) -> Value:
    """A parameter as its type has it; a text where the card does not declare it, None where it was not given."""
    if name not in params:
        return None
    parameter = card.parameters.get(name)
    return params[name] if parameter is None else _parse(parameter, params[name])


_KINDS = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


def _parse(parameter: Parameter, text: str) -> Value:
    match parameter.type:
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "boolean":
            if text.lower() not in _TRUE | _FALSE:
                raise ValueError(text)
            return text.lower() in _TRUE
        case _:
            return text


def as_text(value: object) -> str:
    """A default as it would be given."""
    return str(value).lower() if isinstance(value, bool) else str(value)
