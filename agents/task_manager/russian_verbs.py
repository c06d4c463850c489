"""Russian verbs of work in all their forms; the dictionary behind them is loaded when a Russian text asks for them."""

from dataclasses import replace
from functools import cache

from language.russian import VerbForms, fold_yo, verb_forms
from language.words import has_cyrillic

_WORK = """
    арендовать взять включить внедрить внести восстановить выбрать выдать вызвать выкупить выложить выписать
    выпустить выслать выставить добавить доделать дописать дополнить доработать доставить забронировать заверить
    завершить завести загрузить заказать закончить закрыть закупить залить заменить записать запланировать
    заполнить запросить запустить зарегистрировать зафиксировать изменить измерить изучить исправить купить
    назначить найти нанять напечатать написать нарисовать настроить обеспечить обновить обработать обучить
    объявить оплатить опросить опубликовать организовать освободить отгрузить отдать отладить отослать отправить
    отремонтировать отсканировать оформить оценить перевести перевыпустить передать переделать переписать
    перепроверить переслать пересобрать пересчитать перечислить погасить подать подготовить подключить подобрать
    подписать подтвердить покрасить получить поправить поставить построить посчитать починить предоставить
    предупредить пригласить придумать принять прислать проанализировать проверить провести продать продлить
    проработать протестировать прочитать развернуть разгрузить разместить разобрать разослать разработать
    распечатать рассчитать реализовать решить сверить сверстать сдать сделать смонтировать снять собрать
    согласовать создать сократить составить спланировать спроектировать убрать увеличить удалить улучшить
    упаковать установить утвердить уточнить
    """
# Their participles report no work done: «показан», «начат».
_WITHOUT_PARTICIPLES = """
    вернуть встретить встретиться выкатить выяснить дать договориться донести забрать заехать зайти заняться
    начать обзвонить обсудить объяснить ответить откатить отнести перезвонить поговорить подвести поделиться
    позвонить поздравить показать поменять помочь посетить посмотреть предложить презентовать привезти принести
    пройти проконтролировать проследить просмотреть разобраться рассказать рассмотреть связаться скачать скинуть
    созвониться сообщить сравнить сходить съездить узнать
    """
# Said in the present tense of the future, along with its date.
_ONGOING = """
    выкатывать выпускать встречаться готовить делать доделывать заканчивать закрывать запускать обсуждать
    отправлять писать показывать презентовать проверять проводить сдавать собирать созваниваться тестировать
    """


@cache
def _forms() -> dict[str, VerbForms]:
    forms = {verb.infinitive: verb for verb in verb_forms(f"{_WORK} {_WITHOUT_PARTICIPLES} {_ONGOING}".split())}
    return forms | {name: replace(forms[name], participles=()) for name in _WITHOUT_PARTICIPLES.split()}


def work_verbs() -> list[VerbForms]:
    return [_forms()[infinitive] for infinitive in f"{_WORK} {_WITHOUT_PARTICIPLES}".split()]


def ongoing_verbs() -> list[VerbForms]:
    """Imperfective verbs whose present tense speaks of the future."""
    return [_forms()[infinitive] for infinitive in _ONGOING.split()]


def infinitive_of(word: str) -> str | None:
    """The infinitive of a form of a verb of work; None of any other word."""
    return _infinitives().get(fold_yo(word)) if has_cyrillic(word) else None


@cache
def _infinitives() -> dict[str, str]:
    ongoing = {form: verb.infinitive for verb in ongoing_verbs() for form in (verb.first, verb.third, verb.plural)}
    work = {form: verb.infinitive for verb in work_verbs() for form in verb.forms}
    return {fold_yo(form): infinitive for form, infinitive in (ongoing | work).items()}
