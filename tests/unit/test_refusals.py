"""Every no says what is wrong, in a sentence."""

from inspect import getmembers, isclass
from types import ModuleType

import pytest

import memory.errors
import storage_service.errors
from mindbus.errors import Rejected


def refusals_of(module: ModuleType) -> list[type[Rejected]]:
    return [kind for _name, kind in getmembers(module, isclass) if issubclass(kind, Rejected) and kind is not Rejected]


@pytest.mark.parametrize(
    "module",
    [storage_service.errors, memory.errors],
    ids=lambda module: module.__name__,
)
def test_every_refusal_says_what_it_is_in_words(module: ModuleType) -> None:
    kinds = refusals_of(module)
    assert kinds
    for kind in kinds:
        message = kind.__doc__ or ""
        assert message.endswith((".", "}", "…")), kind
        assert "\n" not in message, kind
