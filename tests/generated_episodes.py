"""Dialogues made up from a seed, in Russian or English, with what must survive their packing planted in them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from bus_schema.episodes import RawTurn

Language = Literal["en", "ru"]
_BEGAN = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Generated:
    """An episode with the names, dates, figures that it was given, the words of its decisions."""

    language: Language
    turns: tuple[RawTurn, ...]
    entities: tuple[str, ...]
    decisions: tuple[str, ...]

    @property
    def words(self) -> int:
        return sum(len(turn.content.split()) for turn in self.turns)


@dataclass(frozen=True)
class _Stock:
    people: Sequence[str]
    places: Sequence[str]
    firms: Sequence[str]
    things: Sequence[str]
    dates: Sequence[Callable[[random.Random], str]]
    amounts: Sequence[Callable[[random.Random], str]]
    facts: Sequence[str]
    decisions: Sequence[str]
    chatter: Sequence[str]
    small_talk: Sequence[str]


_EN = _Stock(
    people=[
        f"{first} {last}"
        for first in ("Anna", "Marcus", "Priya", "Tobias", "Wendy", "Hugo", "Leila", "Kenji")
        for last in ("Novak", "Okafor", "Lindqvist", "Brandt", "Moreau", "Tanaka", "Ferreira")
    ],
    places=("Lisbon", "Rotterdam", "Kyoto", "Gdansk", "Tallinn", "Montevideo", "Leeds", "Turku", "Bruges", "Almaty"),
    firms=("Zephyr Labs", "Northwind Logistics", "Halcyon Bank", "Quill & Partners", "Ostrava Steel", "BlueHeron"),
    things=("PostgreSQL", "ClickHouse", "Project Phoenix", "Kestrel", "OAuth2", "iPhone 15", "JIRA-4821", "Terraform"),
    dates=(
        lambda r: f"{r.choice(('March', 'June', 'October', 'November'))} {r.randint(1, 28)}",
        lambda r: f"{r.randint(1, 28)} {r.choice(('January', 'April', 'August'))} {r.randint(2024, 2027)}",
        lambda r: f"2026-{r.randint(1, 12):02}-{r.randint(1, 28):02}",
        lambda r: f"next {r.choice(('Monday', 'Tuesday', 'Thursday'))}",
        lambda r: f"Q{r.randint(1, 4)} {r.randint(2025, 2027)}",
    ),
    amounts=(
        lambda r: f"${r.randint(2, 98)},{r.randint(100, 999)}",
        lambda r: f"{r.randint(2, 95)}%",
        lambda r: f"{r.randint(3, 240)} licences",
        lambda r: f"{r.randint(2, 90)} million euros",
        lambda r: f"€{r.randint(100, 900)}k",
    ),
    facts=(
        "By the way, {person} moved to {place} a while back and works from there now.",
        "I talked to {person} from {firm}, and the quote came to {amount} in total.",
        "The contract with {firm} runs out on {date}, so we should keep an eye on that.",
        "My sister lives in {place} and she swears by {thing} for this sort of work.",
        "Our current bill for {thing} is about {amount} per month, which is more than I expected.",
        "{person} will send the final report by {date} at the latest.",
        "We tested {thing} last autumn with {person}, and the error rate dropped by {amount}.",
        "The office in {place} opens on {date}, according to what they told me.",
    ),
    decisions=(
        "We decided to move everything to {thing} by {date}.",
        "Okay, we agreed that {person} takes over the budget of {amount}.",
        "So it's settled: {firm} gets the contract for {amount}.",
        "Let's go with {thing} and drop the other option.",
        "We chose {place} for the workshop, and {person} books the venue.",
        "Decision: the launch is postponed to {date}.",
        "I've made up my mind, I'm going with the offer from {firm}.",
        "The team approved the plan and we'll hire {amount} more through {firm}.",
    ),
    chatter=(
        "I have been thinking about this for quite some time, and there are a few sides to it that bother me.",
        "It took most of the morning, because every little detail had to be checked again and again by somebody.",
        "What I like about the approach is that nobody has to wait for anybody else while the work goes on.",
        "There was a long discussion about colours and fonts, which in the end led to nothing in particular.",
        "The documentation could be better, but once you understand the main idea the rest falls into place.",
        "My gut feeling says that we are making this more complicated than it needs to be.",
        "Sometimes a walk around the block helps more than another hour in front of the screen.",
        "If the tests keep failing like that, somebody will have to look at the whole setup from scratch.",
        "Could you explain once more how the two parts are supposed to work together?",
        "The first draft read like a legal document, so it had to be rewritten in plain language.",
        "People keep asking the same questions, which tells me that the introduction is not clear enough.",
        "On the other hand it would be a shame to throw away all that careful preparation.",
        "The old system had its charm, but it was slow and hardly anybody understood how it worked inside.",
        "What do you think would happen if we simply left it as it is for a while?",
        "It rained the whole weekend, so there was plenty of time to read through the backlog.",
    ),
    small_talk=(
        "Hi there! How are you doing?",
        "Thanks a lot, that really helps!",
        "Sounds great to me.",
        "Haha, good one!",
        "No worries, take your time.",
        "Good morning! Did you sleep well?",
        "Alright, talk to you soon!",
        "Wow, that's amazing.",
    ),
)
_RU = _Stock(
    people=[
        f"{first} {last}"
        for first, lasts in (
            ("Анна", ("Соколова", "Верещагина", "Лукина")),
            ("Марат", ("Галиев", "Юсупов", "Ковальчук")),
            ("Ольга", ("Дмитриева", "Журавская", "Бондаренко")),
            ("Пётр", ("Савельев", "Рыбаков", "Штейн")),
            ("Ирина", ("Белова", "Мельник", "Чернова")),
            ("Тимур", ("Асланов", "Громов", "Ли")),
        )
        for last in lasts
    ],
    places=("Казань", "Тбилиси", "Мурманск", "Алматы", "Суздаль", "Выборг", "Берлин", "Самара", "Лиссабон", "Томск"),
    firms=(
        "ООО «Ромашка»",
        "компания «Северный ветер»",
        "банк «Гранит»",
        "студия «Контур»",
        "Zephyr Labs",
        "ТехноСфера",
    ),
    things=(
        "PostgreSQL",
        "ClickHouse",
        "проект «Феникс»",
        "Kafka",
        "1С:Бухгалтерия",
        "iPhone 15",
        "MIND-482",
        "Терраформ",
    ),
    dates=(
        lambda r: f"{r.randint(1, 28)} {r.choice(('марта', 'июня', 'октября', 'ноября'))}",
        lambda r: f"{r.randint(1, 28)} {r.choice(('января', 'апреля'))} {r.randint(2024, 2027)} года",
        lambda r: f"{r.randint(1, 28):02}.{r.randint(1, 12):02}.2026",
        lambda r: r.choice(("следующий понедельник", "следующую пятницу", "конец месяца", "конец квартала")),
        lambda r: f"{r.randint(9, 18)}:{r.choice((15, 30, 45))}",
    ),
    amounts=(
        lambda r: f"{r.randint(2, 950)} 000 рублей",
        lambda r: f"{r.randint(2, 95)} %",
        lambda r: f"{r.randint(3, 240)} лицензий",
        lambda r: f"{r.randint(2, 90)} млн рублей",
        lambda r: f"{r.randint(2, 12)},5 тысяч евро",
    ),
    facts=(
        "Кстати, недавно {person} снова была на связи и показала место на карте: {place}.",
        "Мне звонила {person}, представитель, {firm}, и назвала сумму: {amount}.",
        "Срок договора указан так: {date}, исполнитель там {firm}, за этим надо следить.",
        "Моя сестра живёт далеко, город {place}, и хвалит {thing} для такой работы.",
        "Сейчас счёт за {thing} выходит примерно {amount} в месяц, это больше, чем ожидалось.",
        "Итоговый отчёт пришлёт {person}, крайний срок {date}.",
        "Прошлой осенью мы проверяли {thing}, и доля ошибок снизилась на {amount}.",
        "Новый офис, город {place}, открывается, по их словам, {date}.",
    ),
    decisions=(
        "Решили перевести всё на {thing}, срок {date}.",
        "Договорились, что бюджетом занимается {person}, а сумма {amount}.",
        "Решено: договор получает {firm}, цена {amount}.",
        "Хорошо, берём {thing} и закрываем второй вариант.",
        "Мы выбрали город {place} для семинара, зал бронирует {person}.",
        "Решение: запуск переносим на {date}.",
        "Утвердили план, дальше с нами работает {firm}.",
        "Согласовали закупку: {amount} через поставщика {firm}.",
    ),
    chatter=(
        "Я довольно долго об этом размышлял, и есть несколько сторон, которые меня по-прежнему смущают.",
        "Ушло почти всё утро, потому что каждую мелочь приходилось кому-нибудь перепроверять заново.",
        "В этом подходе мне нравится то, что никому не приходится ждать остальных, пока идёт работа.",
        "Было длинное обсуждение цветов и шрифтов, которое в конце концов ни к чему не привело.",
        "Документация могла быть лучше, но если понять главную мысль, остальное встаёт на свои места.",
        "Есть ощущение, что мы всё усложняем гораздо сильнее, чем нужно на самом деле.",
        "Иногда прогулка вокруг дома помогает больше, чем ещё один час перед экраном.",
        "Если тесты и дальше будут так падать, кому-то придётся разобраться во всём с нуля.",
        "Можешь ещё раз объяснить, как эти две части должны работать вместе?",
        "Первый черновик читался как юридический документ, поэтому его переписали простым языком.",
        "Люди задают одни и те же вопросы, значит, введение написано недостаточно понятно.",
        "С другой стороны, было бы жалко выбросить всю эту тщательную подготовку.",
        "У старой системы было своё обаяние, но работала она медленно, и мало кто понимал её устройство.",
        "Как думаешь, что случится, если просто оставить всё как есть на некоторое время?",
        "Все выходные шёл дождь, поэтому нашлось время перечитать накопившиеся заметки.",
    ),
    small_talk=(
        "Привет! Как дела?",
        "Спасибо большое, очень помогло!",
        "Звучит отлично.",
        "Ха-ха, смешно!",
        "Ничего страшного, не спеши.",
        "Доброе утро! Как спалось?",
        "Ладно, до связи!",
        "Ого, здорово.",
    ),
)
_STOCKS: dict[Language, _Stock] = {"en": _EN, "ru": _RU}
_SIZES = (70, 110, 160, 240, 400, 420, 600, 900, 1400, 2200)


def generated_episodes(count: int, seed: int = 2026) -> list[Generated]:
    """So many, half of them in either language, short beside long."""
    languages: tuple[Language, ...] = ("en", "ru")
    return [
        _Writer(random.Random(f"{seed}/{number}"), languages[number % 2], number).episode(
            _SIZES[number // 2 % len(_SIZES)]
        )
        for number in range(count)
    ]


class _Writer:
    def __init__(self, dice: random.Random, language: Language, number: int) -> None:
        self._dice, self._language, self._number = dice, language, number
        self._stock = _STOCKS[language]
        self._entities: list[str] = []
        self._decisions: list[str] = []
        self._spare = {
            name: dice.sample(getattr(self._stock, f"{name}s" if name != "person" else "people"), k=4)
            for name in ("place", "firm", "thing", "person")
        }

    def episode(self, words: int) -> Generated:
        sentences: list[str] = []
        # One fact in about fifty words, one decision in about a hundred and fifty.
        facts, decisions = max(1, words // 50), max(1, words // 150)
        sentences += [self._planted(self._dice.choice(self._stock.facts)) for _ in range(facts)]
        for _ in range(decisions):
            sentence = self._planted(self._dice.choice(self._stock.decisions))
            self._decisions.append(sentence)
            sentences.append(sentence)
        while sum(len(sentence.split()) for sentence in sentences) < words:
            kind = self._stock.small_talk if self._dice.random() < 0.25 else self._stock.chatter
            sentences.append(self._dice.choice(kind))
        self._dice.shuffle(sentences)
        return Generated(
            self._language, self._turns(sentences), tuple(dict.fromkeys(self._entities)), tuple(self._decisions)
        )

    def _planted(self, template: str) -> str:
        dice, stock = self._dice, self._stock
        values = {name: dice.choice(spare) for name, spare in self._spare.items()}
        values |= {"date": dice.choice(stock.dates)(dice), "amount": dice.choice(stock.amounts)(dice)}
        self._entities += [value for name, value in values.items() if f"{{{name}}}" in template]
        return template.format(**values)

    def _turns(self, sentences: Sequence[str]) -> tuple[RawTurn, ...]:
        turns: list[RawTurn] = []
        rest = list(sentences)
        while rest:
            taken, rest = rest[: (size := self._dice.randint(1, 4))], rest[size:]
            # An assistant decides nothing by itself.
            is_of_user = len(turns) % 2 == 0 or not set(self._decisions).isdisjoint(taken)
            turns.append(
                RawTurn(
                    raw_log_id=f"raw_{self._number}_{len(turns)}",
                    role="user" if is_of_user else "assistant",
                    content=" ".join(taken),
                    time=_BEGAN + timedelta(minutes=len(turns)),
                )
            )
        return tuple(turns)
