"""What a question asks for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.lsm.search.times import Interval, interval_in
from memory.stems import questioned

_CLAUSE = re.compile(r"[?;]\s+|,?\s+(?:and|or|as well as|but|и|или|а также|но)\s+", re.IGNORECASE)
_MOST_PARTS = 4
_NAME = re.compile(r"[^\W\d_][\w'’-]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """`stems` leaves out who is named as a speaker; `parts` are the clauses of a question that has several."""

    stems: Mapping[str, str]
    named: tuple[str, ...]
    parts: tuple[Mapping[str, str], ...]
    interval: Interval | None


def asked(question: str, speakers: Sequence[str], at: datetime) -> Asked:
    """By rules alone, in English or Russian."""
    known = {name: set(questioned(name)) for name in speakers}
    # Stems need capitals no more; a name is asked for only where the question writes it as one.
    capitals = {stem for word in _NAME.findall(question) if word[0].isupper() for stem in questioned(word)}
    named = tuple(name for name, forms in known.items() if forms & capitals)
    of_names = {stem for name in named for stem in known[name]}
    whole = questioned(question)
    meant = {stem: word for stem, word in whole.items() if stem not in of_names}
    return Asked(meant or whole, named, _parts(question, of_names), interval_in(question, at))


def _parts(question: str, of_names: set[str]) -> tuple[Mapping[str, str], ...]:
    clauses = [clause for clause in _CLAUSE.split(question) if clause.strip()]
    if not 2 <= len(clauses) <= _MOST_PARTS:
        return ()
    parts = [{s: word for s, word in questioned(clause).items() if s not in of_names} for clause in clauses]
    return tuple(parts) if all(parts) else ()
