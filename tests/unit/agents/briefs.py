"""Briefs that the tests of the offline model share."""

import importlib.resources

ENGLISH = (importlib.resources.files("config") / "briefs" / "en.md").read_text(encoding="utf-8")
RUSSIAN = (importlib.resources.files("config") / "briefs" / "ru.md").read_text(encoding="utf-8")

PLAIN = (
    "The rink in Lindvik heats a pool. It is ninety metres away. Compressors make heat. The heat goes through a pipe. "
    "The pipe is 140 metres long. Neighbours complained about noise. The noise came from the pump. The pump was boxed "
    "in after eleven weeks. Boxes cost 4,000 euros. The council met in May. Councillors voted 12 to 3. Some abstained. "
    "Votes are public in Lindvik. The library wants heat too. Librarians wrote a letter. The letter asked for a pipe. "
    "Heat would come in winter. Summer is a problem. In summer the ice is off. The school has 400 pupils. "
    "Pupils swim on Tuesdays. Swimming is free for pupils."
)
BULLETS = """# Ночные автобусы

- 12 автобусов ходят с 23:00 до 5:00
- Билет: 60 рублей
    - студентам 30
    - детям бесплатно
- **Водители**: 31, из них 9 женщин. Все ездят парами.
- Почему ночью? Потому что трамваи встают в полночь.

Порядок запуска:

1. Купить автобусы.
2. Обучить водителей.
3. Напечатать карты.
"""
MARKS = """Intro line
==========
The tool reads a file. It prints a number:

```python
print(1)

print(2)
```

Then it stops. It never writes.

| a | b |
|---|---|
| 1 | 2 |

> A quote by somebody.
> Two lines.

Another paragraph with `code. With dots.` inside **bold. Text here** and *more. Words.* End of it.
"""
MIXED = """# Проект Kubernetes migration
Команда migrates сервис billing в Kubernetes. We started in March. Остались 3 сервиса.
The database stays on bare metal. Почему? Because latency matters.
"""
LINES = "Tram line opened 1974\nLine closed 1998\nTracks sold 2003\nMuseum planned 2026"
ONE_SENTENCE = "The harbour froze for the first time since 1963."
ONE_REQUEST = "Напишите статью о кошках."

ALL = {
    "english": ENGLISH,
    "russian": RUSSIAN,
    "plain": PLAIN,
    "bullets": BULLETS,
    "marks": MARKS,
    "mixed": MIXED,
    "lines": LINES,
    "one sentence": ONE_SENTENCE,
    "one request": ONE_REQUEST,
    "title": "# Only a title",
    "empty": "",
}
