"""Values of configuration files that name environment variables, such as `Bearer ${TOKEN}`."""

import os
import re
from collections.abc import Mapping

from mindbus.redaction import add_secrets

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class VariableMissing(Exception):
    """A file names an environment variable that is not set."""


def with_variables(values: Mapping[str, str]) -> dict[str, str]:
    """The values with their variables, whose contents are masked in logs from now on. Raises VariableMissing."""
    return {name: _VARIABLE.sub(_value_of, value) for name, value in values.items()}


def _value_of(variable: re.Match[str]) -> str:
    value = os.environ.get(variable[1])
    if value is None:
        raise VariableMissing(f"the environment variable {variable[1]} is not set")
    add_secrets([value])
    return value
