"""Words that are said in every conversation, English beside Russian: they tell nothing of this one."""

from functools import cache

from memory.stems import stems


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


CHATTY = _listed(
    """
    able actually agree agreed almost already also always amazing another anyone anything around awesome back
    beautiful best better bring came check come cool could day days decided definitely does doing done down each
    easy else enough even ever every everyone everything excited exciting feel feeling felt find fine first
    found full fun gave getting give glad goes going gonna good great guess happen happy hard have hear heard
    help hope hoping idea inspiring into just keep kind know last later learn least left less like little long
    look looking looks lot lots love made make makes making many maybe mean means meet might mind more most much
    must need needs never next nice nothing okay once only other over part people perfect person place plan
    planning please pretty probably quite ready real really remind reminds right said same sees seem seems seen
    send shall share should show since some someone something soon sound sounds special start started starting
    still stuff such super support sure take taken taking talk tell than thank thanks that's thing things think
    thinking this thought through time times today together told tomorrow tonight took totally tough tried true
    truly trying turn used using very wait want wanted wants watch week weekend well went what when where while
    will wish with without wonderful work working works worth would wow year years yesterday your будем будет
    буду будут было быть важно вместо вообще возьмём время всего всем вчера давай давайте даже делать день дней
    договорились должны думаю есть ещё жаль завтра здесь здорово знаю идея именно какой классно когда конечно
    который кстати лучше любим люблю меня мне много может можно надо назад наверное надеюсь начать нашего нашей
    нормально нужен нужна нужно нужны отлично очень первый пока понимаю понял понятно после потом почему поэтому
    правда привет просто пусть решено решили самый свой сегодня сейчас сказал сказала сделать снова совсем
    согласен спасибо сразу стоит столько супер также такой теперь тогда тоже только точно удачи ужасно уже
    хорошо хотел хотела хотелось хочу чтобы чуть этого этом
    """
)


@cache
def chatty_stems() -> frozenset[str]:
    """The same as a search knows them."""
    return frozenset(stem for word in CHATTY for stem in stems(word))
