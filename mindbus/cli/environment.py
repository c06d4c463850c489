"""Settings read from the environment, with errors for the person who typed the command."""

from typing import overload

from pydantic import ValidationError
from pydantic_settings import SettingsError

from mindbus.cli.errors import UsageError
from mindbus.settings import Settings, SettingsT


@overload
def read_settings() -> Settings: ...
@overload
def read_settings(kind: type[SettingsT]) -> SettingsT: ...
def read_settings(kind: type[Settings] = Settings) -> Settings:
    """Raises UsageError where a setting cannot be read."""
    try:
        return kind()
    except ValidationError as invalid:
        problems = "; ".join(f"MINDBUS_{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in invalid.errors())
        raise UsageError(f"the environment is not usable: {problems}") from invalid
    except SettingsError as invalid:
        raise UsageError(f"the environment is not usable: {invalid}") from invalid
