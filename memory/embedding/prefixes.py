"""What a model wants to hear before a text."""

import re
from typing import NamedTuple

# Its instructed kin take a whole instruction instead, which is theirs to say.
_E5 = re.compile(r"(?:^|[/_.-])e5(?:[/_.-]|$)")


class Prefixes(NamedTuple):
    """For questions, for what answers them."""

    query: str = ""
    passage: str = ""


def prefixes_of(model: str) -> Prefixes:
    """By the family that its name tells."""
    name = model.lower()
    return Prefixes("query: ", "passage: ") if _E5.search(name) and "instruct" not in name else Prefixes()
