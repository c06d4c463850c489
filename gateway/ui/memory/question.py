"""What is asked of memory on the screen; all of it stands in the address."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from bus_schema.identities import is_user_id
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.errors import MalformedFilter
from memory.filters import Both, Either, Equals, Filter, parse_filter
from memory.questions import condition, question_of

Picks = frozenset[tuple[str, str]]
_METADATA = "metadata."


@dataclass(frozen=True)
class Question:
    """Words, a filter, values picked among the facets; `user` is whose rights count."""

    text: str = ""
    filter: str = ""
    picks: Picks = frozenset()
    content_type: str | None = None
    user: str | None = None

    @classmethod
    def of_address(cls, query: Mapping[str, str]) -> Self:
        """As a link has it; what is wrong with it, the filter tells."""
        filter_text, picked = query.get("filter", ""), query.get("pick", "")
        try:
            picks = frozenset(_picks(parse_filter(picked)))
        except MalformedFilter:
            filter_text, picks = picked, frozenset()
        user = query.get("user", "")
        return cls(query.get("q", ""), filter_text, picks, query.get("type"), user if is_user_id(user) else None)

    def in_address(self) -> dict[str, str | None]:
        """What the address is to say."""
        return {
            "q": self.text or None,
            "filter": self.filter or None,
            "pick": " AND ".join(self._picked()) or None,
            "type": self.content_type,
            "user": self.user,
        }

    @property
    def is_open(self) -> bool:
        """Whether nothing narrows it down."""
        return not (self.text.strip() or self.filter.strip() or self.picks or self.content_type)

    def query(self) -> KemQuery:
        """Raises MalformedFilter, with its place in what was typed; CannotBeAsked, ValidationError."""
        text = self.text.strip()
        typed = question_of(self.filter, text_query=text or None)
        if not self.picks:
            return typed
        parts = ([f"({self.filter})"] if self.filter.strip() else []) + list(self._picked())
        return question_of(" AND ".join(parts), text_query=text or None)

    def toggled(self, key: str, value: str) -> "Question":
        """With the value picked, or no longer."""
        return replace(self, picks=self.picks ^ {(key, value)})

    def of_type(self, content_type: str) -> "Question":
        """Of this type alone, or no longer: memory cannot be asked for it, so it is the screen that looks."""
        return replace(self, content_type=None if content_type == self.content_type else content_type)

    def shows(self, kem: Kem) -> bool:
        """Whether its type is wanted."""
        return self.content_type in (None, kem.content_type)

    def _picked(self) -> Iterator[str]:
        """Values of one key are joined by OR."""
        for key in sorted({key for key, _ in self.picks}):
            conditions = [condition(key, value) for name, value in sorted(self.picks) if name == key]
            yield conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


def _picks(tree: Filter) -> Iterator[tuple[str, str]]:
    match tree:
        case Equals(name=name, value=value) if name.startswith(_METADATA):
            yield name.removeprefix(_METADATA), value
        case Both(parts=parts) | Either(parts=parts):
            for part in parts:
                yield from _picks(part)
        case _:
            pass
