"""What the offline model says in conversation, in both languages."""

from dataclasses import dataclass

from language.words import Language


@dataclass(frozen=True)
class Phrases:
    """Each with several wordings, so that a talk does not sound like a form."""

    greeting: tuple[str, ...]
    thanks: tuple[str, ...]
    farewell: tuple[str, ...]
    well: tuple[str, ...]
    about: tuple[str, ...]
    good_news: tuple[str, ...]
    bad_news: tuple[str, ...]
    understood: tuple[str, ...]
    known: tuple[str, ...]
    you_said: tuple[str, ...]
    unknown: tuple[str, ...]
    related: tuple[str, ...]
    listening: tuple[str, ...]
    reminder: tuple[str, ...]
    your_name: tuple[str, ...]
    name_noted: tuple[str, ...]
    subagent_said: tuple[str, ...]


PHRASES = {
    Language.ENGLISH: Phrases(
        greeting=("Hello! What can I do for you?", "Hi! What's on your mind?", "Good to see you. How can I help?"),
        thanks=("You're welcome!", "Any time.", "Glad to help."),
        farewell=("See you!", "Take care, talk to you later.", "Goodbye!"),
        well=("All is well here, thank you. And you?", "Fine, thanks. How is it going on your side?"),
        about=("I'm your team's assistant: tell me what is going on, I keep track of tasks, dates and decisions.",),
        good_news=("That's good to hear.", "Good news!", "Nice."),
        bad_news=("I'm sorry to hear that.", "That sounds hard.", "That's not easy."),
        understood=("Understood: {said}", "Got it: {said}", "All right, noted: {said}"),
        known=("As far as I know: {said}", "Here is what I have: {said}", "I have this on it: {said}"),
        you_said=("You told me: {said}", "Earlier you said: {said}", "From what you said: {said}"),
        unknown=(
            "I don't know that yet. If you tell me, I'll remember it.",
            "Nothing I've been told answers that.",
            "I have nothing on that so far.",
        ),
        related=("By the way, I know this about it: {said}", "This may matter here: {said}"),
        listening=("I see. Go on.", "All right.", "I'm listening."),
        reminder=("A note for you: {said}", "Something you should know: {said}", "Just so you know: {said}"),
        your_name=("Your name is {said}.",),
        name_noted=("I'll remember it: your name is {said}.", "Noted: your name is {said}."),
        subagent_said=("The sub-agent {name} says: {said}",),
    ),
    Language.RUSSIAN: Phrases(
        greeting=("Здравствуйте! Чем могу помочь?", "Привет! Что у вас нового?", "Здравствуйте! Слушаю вас."),
        thanks=("Пожалуйста!", "Всегда к вашим услугам.", "Обращайтесь."),
        farewell=("До встречи!", "Всего доброго, до связи.", "До свидания!"),
        well=("Всё хорошо, спасибо. А у вас?", "Спасибо, всё в порядке. Как ваши дела?"),
        about=("Это ассистент вашей команды: расскажите, что происходит, — задачи, сроки и решения не потеряются.",),
        good_news=("Хорошая новость!", "Это радует.", "Отлично."),
        bad_news=("Сочувствую.", "Да, это непросто.", "Звучит тяжело."),
        understood=("Понятно: {said}", "Принято: {said}", "Хорошо, буду иметь в виду: {said}"),
        known=("Насколько мне известно: {said}", "Вот что у меня есть: {said}", "Об этом известно вот что: {said}"),
        you_said=("Вы говорили: {said}", "Раньше вы сказали: {said}", "С ваших слов: {said}"),
        unknown=(
            "Этого я пока не знаю. Расскажите — буду иметь в виду.",
            "Мне пока не говорили ничего, что отвечало бы на это.",
            "Об этом у меня пока ничего нет.",
        ),
        related=("Кстати, об этом известно: {said}", "Здесь может быть важно: {said}"),
        listening=("Понимаю. Продолжайте.", "Хорошо.", "Слушаю вас."),
        reminder=("Для вас есть новость: {said}", "Вам стоит знать: {said}", "Обратите внимание: {said}"),
        your_name=("Вас зовут {said}.",),
        name_noted=("Буду помнить: вас зовут {said}.", "Принято: вас зовут {said}."),
        subagent_said=("Подагент {name} отвечает: {said}",),
    ),
}
