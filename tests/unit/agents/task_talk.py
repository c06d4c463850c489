"""Conversations with the tasks that a careful reader finds in them; all said on Wednesday, 11 March 2026."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    """A task: words that its text must have, the owner's name (None: nobody, `me`: the speaker), its due date."""

    words: str
    owner: str | None = "me"
    due: str | None = None


@dataclass(frozen=True)
class Talk:
    name: str
    said: tuple[str, ...]
    tasks: tuple[Expected, ...] = ()


DEVELOPMENT = (
    Talk(
        "ru: пообещала",
        (
            "Доброе утро! Встретилась с заказчиком, им всё понравилось.",
            "Подготовлю смету до пятницы и отправлю её Ирине в понедельник.",
            "Ещё мне надо позвонить в банк завтра в 11:00.",
        ),
        (
            Expected("смету", due="03-13"),
            Expected("отправить Ирине", due="03-16"),
            Expected("позвонить банк", due="03-12 11:00"),
        ),
    ),
    Talk(
        "ru: раздал задачи",
        (
            "По итогам планёрки: Борис подготовит презентацию к 20 марта, "
            "а Ольга должна проверить договор до конца недели.",
            "Отчёт по продажам сделает Антон.",
            "Погода сегодня отличная, настроение тоже.",
        ),
        (
            Expected("презентацию", "Борис", "03-20"),
            Expected("проверить договор", "Ольга", "03-13"),
            Expected("отчёт продажам", "Антон"),
        ),
    ),
    Talk(
        "ru: просьбы и напоминания",
        (
            "Напомни мне завтра утром оплатить хостинг.",
            "Не забыть заказать пропуск для подрядчика.",
            "Попроси Марию прислать акты к среде.",
        ),
        (
            Expected("оплатить хостинг", due="03-12 10:00"),
            Expected("заказать пропуск"),
            Expected("прислать акты", "Мария", "03-18"),
        ),
    ),
    Talk(
        "ru: ничего не обещал",
        (
            "Если бы мне надо было ехать в Казань, я бы поехал поездом.",
            "А мне нужно что-нибудь подписывать?",
            "Не нужно отправлять письмо, я уже отправил.",
            "Надо же, как быстро летит время!",
            "Вчера мне пришлось переделать весь отчёт.",
            "Возможно, когда-нибудь выучу испанский.",
        ),
    ),
    Talk(
        "ru: сроки без исполнителя",
        (
            "Макет нужен к 25 марта.",
            "Надо обновить сертификаты до конца месяца.",
            "Дедлайн по отчёту — 31 марта.",
            "Релиз должен быть готов до 1 апреля.",
        ),
        (
            Expected("макет", None, "03-25"),
            Expected("обновить сертификаты", None, "03-31"),
            Expected("отчёт", None, "03-31"),
            Expected("релиз", None, "04-01"),
        ),
    ),
    Talk(
        "ru: списком",
        (
            "Задачи на неделю:\n- согласовать бюджет с финансами\n- Катя: собрать отзывы клиентов до четверга\n"
            "- TODO: починить сборку",
        ),
        (
            Expected("согласовать бюджет"),
            Expected("собрать отзывы", "Катя", "03-12"),
            Expected("починить сборку"),
        ),
    ),
    Talk(
        "ru: ответственный",
        (
            "Ответственный за интеграцию — Дмитрий.",
            "На Юле презентация для совета директоров, срок — 18 марта.",
            "Пусть Сергей созвонится с подрядчиком сегодня.",
            "С меня протокол встречи.",
        ),
        (
            Expected("интеграцию", "Дмитрий"),
            Expected("презентация", "Юля", "03-18"),
            Expected("созвониться подрядчиком", "Сергей", "03-11"),
            Expected("протокол", "me"),
        ),
    ),
    Talk(
        "ru: факты, а не задачи",
        (
            "Бюджет проекта — 500 тысяч рублей.",
            "Мы решили использовать PostgreSQL.",
            "Анна отвечает за маркетинг с прошлого года.",
            "Клиент недоволен сроками, звонил уже дважды.",
            "Спасибо, очень помог!",
        ),
        (),
    ),
    Talk(
        "en: commitments",
        (
            "Morning! The client loved the demo.",
            "I'll send the proposal to Maria by Friday and I need to call the bank tomorrow at 11am.",
            "Also I have to admit the food was great.",
        ),
        (
            Expected("send proposal Maria", due="03-13"),
            Expected("call bank", due="03-12 11:00"),
        ),
    ),
    Talk(
        "en: hands out work",
        (
            "From the stand-up: Boris will prepare the slides by March 20, "
            "and Olga needs to review the contract before the end of the week.",
            "Could you please ask Dan to book the venue?",
            "The sales report is on Anton.",
        ),
        (
            Expected("prepare slides", "Boris", "03-20"),
            Expected("review contract", "Olga", "03-13"),
            Expected("book venue", "Dan"),
            Expected("sales report", "Anton"),
        ),
    ),
    Talk(
        "en: reminders",
        (
            "Remind me to renew the domain tomorrow morning.",
            "Don't forget to order badges for the contractors.",
            "TODO: fix the nightly build",
            "Let me know if anything breaks.",
        ),
        (
            Expected("renew domain", due="03-12 10:00"),
            Expected("order badges"),
            Expected("fix nightly build"),
        ),
    ),
    Talk(
        "en: no promise",
        (
            "If I had to choose, I'd take the train.",
            "Do I need to sign anything?",
            "You don't need to send the letter, I already did.",
            "I had to redo the whole report yesterday.",
            "Maybe I'll learn Spanish some day.",
            "I'll be in Berlin next week.",
            "We'll see.",
            "I need to know what you think.",
        ),
    ),
    Talk(
        "en: deadlines",
        (
            "The mock-ups are due on March 25.",
            "We need to rotate the certificates before the end of the month.",
            "The deadline for the grant application is March 31.",
            "The release must be ready by April 1.",
        ),
        (
            Expected("mock-ups", None, "03-25"),
            Expected("rotate certificates", None, "03-31"),
            Expected("grant application", None, "03-31"),
            Expected("release", None, "04-01"),
        ),
    ),
    Talk(
        "en: a list",
        (
            "Action items:\n- Kate: collect customer feedback by Thursday\n"
            "- agree on the budget with finance\n- Tom to update the wiki",
        ),
        (
            Expected("collect customer feedback", "Kate", "03-12"),
            Expected("agree budget finance"),
            Expected("update wiki", "Tom"),
        ),
    ),
    Talk(
        "en: responsible",
        (
            "The integration is assigned to Dave.",
            "Emma, please draft the agenda for the board meeting by Monday.",
            "I promised to review Peter's pull request today.",
            "Let's schedule the retro for next Tuesday.",
        ),
        (
            Expected("integration", "Dave"),
            Expected("draft agenda", "Emma", "03-16"),
            Expected("review pull request", due="03-11"),
            Expected("schedule retro", None, "03-17"),
        ),
    ),
    Talk(
        "en: facts, no tasks",
        (
            "The project budget is 500 thousand dollars.",
            "We decided to use PostgreSQL.",
            "Anna has been responsible for hiring in the past.",
            "The client is unhappy with the schedule.",
            "Thanks, that helps a lot!",
        ),
    ),
)

HELD_OUT = (
    Talk(
        "ru: стройка",
        (
            "Был на объекте, фундамент залили, осталось два участка.",
            "Закажу арматуру сегодня, иначе не успеем.",
            "Виктор завтра встретится с поставщиком в 14:00.",
            "Нужно до 25.03 получить разрешение от мэрии.",
            "Кстати, кран опять сломался, третий раз за месяц.",
        ),
        (
            Expected("заказать арматуру", due="03-11"),
            Expected("встретиться поставщиком", "Виктор", "03-12 14:00"),
            Expected("получить разрешение", None, "03-25"),
        ),
    ),
    Talk(
        "ru: бухгалтерия",
        (
            "Сверку с налоговой сделаю в четверг, раньше не получится.",
            "Наталья обещала прислать первичку до обеда.",
            "Акты за февраль надо закрыть до 20 числа.",
            "Если успею, посмотрю и авансовые отчёты.",
            "Премии начислили, всё хорошо.",
        ),
        (
            Expected("сверку", due="03-12"),
            Expected("прислать первичку", "Наталья", "03-11 13:00"),
            Expected("закрыть акты", None, "03-20"),
        ),
    ),
    Talk(
        "ru: маркетинг",
        (
            "Давайте запустим рассылку в понедельник утром.",
            "Лена нарисует баннеры, а я напишу тексты ко вторнику.",
            "Поручи Максиму собрать статистику по каналам.",
            "Конверсия выросла до 4,2 процента, это рекорд.",
            "А кто будет вести блог?",
        ),
        (
            Expected("запустить рассылку", None, "03-16 10:00"),
            Expected("нарисовать баннеры", "Лена"),
            Expected("написать тексты", due="03-17"),
            Expected("собрать статистику", "Максим"),
        ),
    ),
    Talk(
        "ru: кадры",
        (
            "Я должна до пятницы отправить оффер Кириллу.",
            "Ему ещё нужно пройти медосмотр.",
            "Оформлю пропуск новому сотруднику через два дня.",
            "Собеседование прошло хорошо, ребятам он понравился.",
            "Не забудь поздравить Тамару с днём рождения 15 марта!",
        ),
        (
            Expected("отправить оффер", due="03-13"),
            Expected("пройти медосмотр", None),
            Expected("оформить пропуск", due="03-13"),
            Expected("поздравить Тамару", due="03-15"),
        ),
    ),
    Talk(
        "ru: разработка",
        (
            "Баг с оплатой воспроизвёл, причина в таймауте.",
            "Исправлю к концу дня и попрошу Глеба проверить.",
            "Миграцию базы делаем в субботу ночью.",
            "Мне кажется, что тесты стали медленнее.",
            "Документацию по API нужно обновить, это на Косте.",
        ),
        (
            Expected("исправить", due="03-11 18:00"),
            Expected("проверить", "Глеб"),
            Expected("миграцию базы", None, "03-14 23:00"),
            Expected("документацию API", "Костя"),
        ),
    ),
    Talk(
        "ru: разговор ни о чём",
        (
            "Вчера ходили в театр, давали «Чайку».",
            "Нужно ли нам вообще это совещание?",
            "Я думал, что надо заказать такси, но нас подвезли.",
            "Он сказал, что сделает, как сможет.",
            "Хочется в отпуск.",
        ),
    ),
    Talk(
        "en: building site",
        (
            "Was on site today, the foundation is poured.",
            "I'm going to order the rebar today, otherwise we'll be late.",
            "Victor is meeting the supplier tomorrow at 2pm.",
            "We have to get the permit from the city by 25 March.",
            "The crane broke again, third time this month.",
        ),
        (
            Expected("order rebar", due="03-11"),
            Expected("meeting supplier", "Victor", "03-12 14:00"),
            Expected("get permit", None, "03-25"),
        ),
    ),
    Talk(
        "en: accounting",
        (
            "I'll do the reconciliation on Thursday, can't do it earlier.",
            "Natalie promised to send the invoices by noon.",
            "The February books have to be closed by the 20th.",
            "If I have time I'll look at the expense reports too.",
            "Bonuses are out, everybody's happy.",
        ),
        (
            Expected("reconciliation", due="03-12"),
            Expected("send invoices", "Natalie", "03-11 12:00"),
            Expected("February books", None, "03-20"),
        ),
    ),
    Talk(
        "en: marketing",
        (
            "Let's launch the newsletter on Monday morning.",
            "Helen will draw the banners and I'll write the copy by Tuesday.",
            "Tell Max to collect the channel statistics.",
            "Conversion is up to 4.2 percent, a record.",
            "Who is going to run the blog?",
        ),
        (
            Expected("launch newsletter", None, "03-16 10:00"),
            Expected("draw banners", "Helen"),
            Expected("write copy", due="03-17"),
            Expected("collect channel statistics", "Max"),
        ),
    ),
    Talk(
        "en: hiring",
        (
            "I must send Carl the offer before Friday.",
            "He still needs to pass the medical.",
            "I've scheduled the onboarding, the badge will be ready in two days.",
            "Don't forget to congratulate Tamara on March 15!",
            "The interview went well and the team liked him.",
        ),
        (
            Expected("send Carl offer", due="03-13"),
            Expected("pass medical", None),
            Expected("badge", None, "03-13"),
            Expected("congratulate Tamara", due="03-15"),
        ),
    ),
    Talk(
        "en: development",
        (
            "Reproduced the payment bug, it's the timeout.",
            "I'll fix it by the end of the day and ask Greg to review it.",
            "We're running the database migration on Saturday at 11pm.",
            "I think the tests have become slower.",
            "The API docs need updating, that's on Kevin.",
        ),
        (
            Expected("fix", due="03-11 18:00"),
            Expected("review", "Greg"),
            Expected("database migration", None, "03-14 23:00"),
            Expected("API docs", "Kevin"),
        ),
    ),
    Talk(
        "en: small talk",
        (
            "We went to the theatre yesterday, they played The Seagull.",
            "Do we need this meeting at all?",
            "I thought I had to call a cab but we got a ride.",
            "He said he'd do it if he can.",
            "I could use a holiday.",
        ),
    ),
)
