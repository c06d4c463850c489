"""What memory is to find again: texts with questions, written for it, cut from this repository's own pages, made up."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

_HERE = Path(__file__).parent
_PAGES = ("README.md", "docs/concepts.md", "docs/benchmarks.md", "docs/how-to/*.md", "docs/decisions/*.md")
_MOST_CHARS = 2000


def _listed(words: str) -> list[str]:
    return words.split()


_PLACES = _listed("Tver Oulu Perm Lübeck Cork Bergen Riga Vologda Ghent Kazan Narva Porto Pskov Turin Visby")
_WORKS = {
    "pumping station": "the second pump draws air; a new seal comes on the {day}th",
    "greenhouse": "the blinds close at noon instead of opening; someone had swapped two wires",
    "bakery": "the oven loses heat through the left door, so that one tray in three stays pale",
    "ferry terminal": "the gangway is {day} centimetres too short at low tide",
    "print shop": "the yellow ink dries in the nozzle over weekends",
    "clinic": "the lift stops between floors when the kitchen's hood is on",
    "school": "the bell rings {day} minutes early since the clocks went forward",
}
_MENDED = [
    "It was mended on the spot.",
    "The owner wants three offers first.",
    "Nothing was done, since the key was missing.",
    "We come again when the part is there.",
]
_RUSSIAN_PLACES = _listed(
    "Твери Калуге Перми Вологде Казани Пскове Рязани Томске Туле Уфе Чите Сочи Ижевске Орле Курске"
)
_RUSSIAN_WORKS = {
    "насосной": "второй насос подсасывает воздух, уплотнение привезут {day} числа",
    "теплице": "шторы в полдень закрываются, а не открываются: кто-то перепутал два провода",
    "пекарне": "печь теряет жар через левую дверцу, каждый третий противень бледный",
    "прачечной": "центрифуга гуляет по полу, потому что под ней просела плитка",
    "типографии": "жёлтая краска за выходные засыхает в сопле",
    "больнице": "лифт застревает между этажами, когда на кухне включают вытяжку",
    "школе": "звонок звенит на {day} минут раньше после перевода часов",
}
_RUSSIAN_MENDED = [
    "Починили на месте.",
    "Хозяин хочет сначала сравнить три сметы.",
    "Ничего не сделали: не нашли ключ.",
    "Приедем снова, когда пришлют деталь.",
]


@dataclass(frozen=True)
class Document:
    """A text of at most 2,000 characters; its name says nothing of it."""

    name: str
    text: str
    questions: tuple[str, ...] = ()


def documents(count: int) -> list[Document]:
    """The same ones each time, the written first; 200 are all there are questions for."""
    found = [*_written(), *_made_up()]
    pages = list(_pages())
    return [*found, *pages][:count] if count <= len(found) else [*found, *pages[: count - len(found)]]


def _written() -> Iterator[Document]:
    for each in yaml.safe_load((_HERE / "data" / "memory_documents.yaml").read_text()):
        yield Document(each["name"], each["text"], tuple(each["questions"]))


def _made_up() -> Iterator[Document]:
    chance = random.Random(7)
    asked = yaml.safe_load((_HERE / "data" / "memory_questions.yaml").read_text())
    for number in range(105):
        is_russian = number % 2 == 1
        places, works = (_RUSSIAN_PLACES, _RUSSIAN_WORKS) if is_russian else (_PLACES, _WORKS)
        place, work = places[number // 2 % len(places)], list(works)[number // 2 % len(works)]
        fault = works[work].format(day=3 + number % 20)
        if is_russian:
            mended = chance.choice(_RUSSIAN_MENDED)
            text = f"Выезд {number} в марте. В {work} в {place}: {fault}. {mended}"
        else:
            mended = chance.choice(_MENDED)
            text = f"Visit {number}, in March. At the {work} in {place} {fault}. {mended}"
        name = f"visit-{number}"
        yield Document(name, text, tuple(asked.get(name, ())))


def _pages() -> Iterator[Document]:
    """Sections of this repository's documentation, as far as they are prose."""
    root = _HERE.parent
    for pattern in _PAGES:
        for path in sorted(root.glob(pattern)):
            sections = path.read_text().split("\n## ")
            for number, section in enumerate(sections):
                if len(section) > 200:
                    yield Document(f"{path.stem}-{number}", section[:_MOST_CHARS])
