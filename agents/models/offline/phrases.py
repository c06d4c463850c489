"""The offline model's own words, in English and Russian: everything else that it says is quoted."""

import hashlib

from language.words import Language

_PHRASES: dict[str, tuple[str, str]] = {
    "untitled": ("Untitled", "Без названия"),
    "introduction": ("Introduction", "Вступление"),
    "no_facts": (
        "The material holds nothing that could be quoted; add to it what the article should tell.",
        "В материале нечего цитировать; добавьте в него то, о чём должна рассказать статья.",
    ),
    "report": ("Research report", "Исследование"),
    "report_note": (
        "Everything in quotation blocks is copied from the material word for word; nothing else is.",
        "Всё, что стоит в блоках цитат, взято из материала дословно; извне не добавлено ничего.",
    ),
    "demands": ("What the brief asks for", "О чём просит задание"),
    "open_questions": ("Open questions", "Открытые вопросы"),
    "nothing_open": ("None found.", "Не найдены."),
    "ideas": ("Ideas", "Идеи"),
    "ideas_note": (
        "Angles computed from the material; the quotes are its own words.",
        "Ракурсы вычислены по материалу; цитаты — его собственные слова.",
    ),
    "angle": ("Angle", "Ракурс"),
    "recommended": ("recommended", "рекомендуется"),
    "outline": ("Proposed outline", "План"),
    "whole_story": ("The whole story", "История целиком"),
    "section_first": ("Starting with “{heading}”", "Начать с темы «{heading}»"),
    "note": (
        "This article organises and quotes the brief “{title}”: {used} of its {total} statements, in its own words. "
        "Nothing has been added from other sources.",
        "Статья составлена из материала задания «{title}»: использовано утверждений — {used} из {total}, дословно. "
        "Из других источников ничего не добавлено.",
    ),
    "critique": ("Critique", "Критика"),
    "measures": (
        "Computed from the text: {sentences} sentences, {words} words.",
        "Вычислено по тексту: предложений — {sentences}, слов — {words}.",
    ),
    "findings": ("Findings", "Замечания"),
    "no_findings": ("None.", "Замечаний нет."),
    "fix": ("Fix", "Исправление"),
    "missing": ("Missing fact", "Пропущен факт"),
    "missing_fix": ("insert it in “{section}”.", "вставить в раздел «{section}»."),
    "repeated": ("Repetition", "Повтор"),
    "repeated_fix": ("remove it, the text says this already.", "убрать: в тексте это уже сказано."),
    "long": ("Long sentence", "Длинное предложение"),
    "long_fix": ("split or shorten it ({words} words).", "разделить или сократить (слов: {words})."),
    "length": ("Length", "Объём"),
    "length_fix": (
        "{words} words, where the brief asks for {least}–{most}.",
        "слов в тексте: {words}, а задание просит {least}–{most}.",
    ),
    "no_title": ("The text has no title.", "У текста нет заголовка."),
    "no_note": ("The note on sources is missing.", "Нет примечания об источниках."),
    "said_twice": ("This is said twice: “{quote}”", "Сказано дважды: «{quote}»"),
    "too_short": (
        "The text has {words} words where the brief asks for at least {least}; the material has more to quote.",
        "Слов в тексте: {words}, а задание просит не меньше {least}; в материале есть что добавить.",
    ),
    "only_quotes": (
        "No language model is configured, so this answer only quotes what was given:",
        "Языковая модель не настроена, поэтому ответ лишь цитирует полученное:",
    ),
    "nothing_given": (
        "No language model is configured, and nothing was given that could be quoted.",
        "Языковая модель не настроена, а процитировать нечего.",
    ),
    # Of conversation: wordings between bars, so that it does not sound like a form.
    "greeting": ("Hello! What can I do for you?|Hi! What's on your mind?", "Здравствуйте! Чем могу помочь?|Привет!"),
    "thanks": ("You're welcome!|Any time.|Glad to help.", "Пожалуйста!|Всегда к вашим услугам.|Обращайтесь."),
    "farewell": ("See you!|Goodbye!", "До встречи!|Всего доброго, до связи.|До свидания!"),
    "well": ("All is well here, thank you. And you?", "Всё хорошо, спасибо. А у вас?|Спасибо, всё в порядке."),
    "about": (
        "I'm your team's assistant: tell me what is going on, I keep track of tasks, dates and decisions.",
        "Это ассистент вашей команды: расскажите, что происходит, — задачи, сроки и решения не потеряются.",
    ),
    "good_news": ("That's good to hear.|Good news!|Nice.", "Хорошая новость!|Это радует.|Отлично."),
    "bad_news": ("I'm sorry to hear that.|That sounds hard.", "Сочувствую.|Да, это непросто.|Звучит тяжело."),
    "understood": ("Understood: {said}|Got it: {said}|All right, noted: {said}", "Понятно: {said}|Принято: {said}"),
    "known": (
        "This is what I know about it. {said}|Here is what I have on it. {said}",
        "Вот что об этом известно. {said}",
    ),
    "you_said": ("You told me: {said}|Earlier you said: {said}", "Вы говорили: {said}|С ваших слов: {said}"),
    "not_sure": ("I am not sure, but I recall this: {said}", "Не уверен, но помню вот что: {said}"),
    "unknown": (
        "I don't know that yet. If you tell me, I'll remember it.|I have nothing on that so far.",
        "Этого я пока не знаю. Расскажите — буду иметь в виду.|Об этом у меня пока ничего нет.",
    ),
    "related": ("By the way, I know this about it: {said}", "Кстати, об этом известно: {said}"),
    "listening": ("I see. Go on.|All right.|I'm listening.", "Понимаю. Продолжайте.|Хорошо.|Слушаю вас."),
    "reminder": (
        "A note for you: {said}|Just so you know: {said}",
        "Вам стоит знать: {said}|Обратите внимание: {said}",
    ),
    "reminder_past": (
        "That moment has passed already. When shall I remind you?",
        "Это время уже прошло. Когда напомнить?",
    ),
    "reminder_empty": ("What shall I remind you of, and when?", "О чём напомнить и когда?"),
    "your_name": ("Your name is {said}.", "Вас зовут {said}."),
    "name_noted": ("I'll remember it: your name is {said}.", "Буду помнить: вас зовут {said}."),
    "subagent_said": ("The sub-agent {name} says: {said}", "Подагент {name} отвечает: {said}"),
}


def phrase(language: Language, key: str, of: str = "", /, **values: object) -> str:
    """A phrase, filled in; its wording is always the same for the same words that it answers."""
    wordings = _PHRASES[key][language is Language.RUSSIAN].split("|")
    return wordings[hashlib.sha256(of.encode()).digest()[0] % len(wordings)].format(**values)
