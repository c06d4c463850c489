"""Conditions of cards: `critique.satisfied and params.length != "short"`, over outputs and parameters."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Value = bool | int | float | str | tuple[str, ...] | None
Lookup = Callable[[str, str], Value]
PARAMS = "params"

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"[^"]*"|'[^']*')
      | (?P<number>\d+(?:\.\d+)?(?![\w-]))
      | (?P<operator>==|!=|<=|>=|<|>|\(|\))
      | (?P<word>[\w-]+(?:\.\w+)?)
    )""",
    re.VERBOSE,
)
_COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": lambda left, right: _is_less(left, right),
    ">": lambda left, right: _is_less(right, left),
    "<=": lambda left, right: left == right or _is_less(left, right),
    ">=": lambda left, right: left == right or _is_less(right, left),
}
_DEEPEST = 20
_LITERALS: Mapping[str, Value] = {"true": True, "false": False}


class InvalidCondition(ValueError):
    """The text is no condition; say what is to be so, as in `critique.satisfied and params.length > 3`."""


@dataclass(frozen=True)
class Condition:
    """A condition that can be asked; `references` are the names and values that it looks up."""

    references: tuple[tuple[str, str], ...]
    holds: Callable[[Lookup], bool]

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Raises InvalidCondition."""
        parser = _Parser([*_tokens(text)])
        evaluate = parser.either()
        if parser.rest:
            raise InvalidCondition(f"{parser.rest[0][1]!r} is one word too many")
        return cls(tuple(parser.references), lambda lookup: _is_true(evaluate(lookup)))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The condition with other names of steps. Raises InvalidCondition."""
    words = []
    for kind, word in _tokens(text):
        name, dot, value = word.partition(".")
        words.append(f"{names.get(name, name)}{dot}{value}" if kind == "word" and dot else word)
    return " ".join(words)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise InvalidCondition(f"cannot be read from {text[at:].strip()[:20]!r} on")
        yield match.lastgroup, match[match.lastgroup]
        at = match.end()


class _Parser:
    """Recursive descent: or, and, not, comparison, value."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.rest = tokens
        self.references: list[tuple[str, str]] = []
        self._depth = 0

    def either(self) -> Callable[[Lookup], Value]:
        sides = [self._both()]
        while self._take("or"):
            sides.append(self._both())
        return sides[0] if len(sides) == 1 else lambda lookup: any(_is_true(side(lookup)) for side in sides)

    def _both(self) -> Callable[[Lookup], Value]:
        sides = [self._negated()]
        while self._take("and"):
            sides.append(self._negated())
        return sides[0] if len(sides) == 1 else lambda lookup: all(_is_true(side(lookup)) for side in sides)

    def _negated(self) -> Callable[[Lookup], Value]:
        if self._take("not"):
            of = self._inside(self._negated)
            return lambda lookup: not _is_true(of(lookup))
        left = self._value()
        if self.rest and self.rest[0][1] in _COMPARISONS and self.rest[0][0] == "operator":
            compare, right = _COMPARISONS[self.rest.pop(0)[1]], self._value()
            return lambda lookup: compare(_plain(left(lookup)), _plain(right(lookup)))
        return left

    def _value(self) -> Callable[[Lookup], Value]:
        if not self.rest:
            raise InvalidCondition("ends too early")
        kind, word = self.rest.pop(0)
        if word == "(":
            inner = self._inside(self.either)
            if not self._take(")"):
                raise InvalidCondition("has an open parenthesis")
            return inner
        if kind == "text":
            return lambda _lookup: word[1:-1]
        if kind == "number":
            number = float(word)
            return lambda _lookup: number
        if word in _LITERALS:
            return lambda _lookup: _LITERALS[word]
        name, dot, value = word.partition(".")
        if kind != "word" or not dot:
            raise InvalidCondition(
                f"{word!r} means nothing here; name a value such as critique.satisfied, quote a text"
            )
        self.references.append((name, value))
        return lambda lookup: lookup(name, value)

    def _inside(self, parse: Callable[[], Callable[[Lookup], Value]]) -> Callable[[Lookup], Value]:
        if self._depth == _DEEPEST:
            raise InvalidCondition(f"is nested deeper than {_DEEPEST}; make it simpler")
        self._depth += 1
        inner = parse()
        self._depth -= 1
        return inner

    def _take(self, word: str) -> bool:
        if self.rest and self.rest[0][1] == word and self.rest[0][0] != "text":
            self.rest.pop(0)
            return True
        return False


def _plain(value: Value) -> Value:
    """Texts are compared whatever their case, as models write them."""
    if isinstance(value, str):
        return value.strip().casefold()
    return value if isinstance(value, bool | tuple) or value is None else float(value)


def _is_true(value: Value) -> bool:
    return bool(value)


def _is_less(left: Value, right: Value) -> bool:
    """Order of two values; of different types neither is less."""
    return type(left) is type(right) and left is not None and not isinstance(left, bool) and left < right  # type: ignore[operator]  # of one type
