"""Words that are written large, or in Latin letters, without being names, English beside Russian."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Written large for other reasons than that somebody is called so.
NEVER = _listed(
    """
    i i'm i'd i'll i've ok okay hi hello hey wow oh ah yes yeah yep yup no nope nah thanks thank please sorry
    well so great good nice cool awesome amazing lol haha hmm um uh btw fyi asap tbh imo omg bye dear sir madam
    mr mrs ms dr monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december decision decided agreed todo note usd eur rub gbp chf kzt
    pln ок привет здравствуй здравствуйте да нет спасибо пожалуйста хорошо ладно ну вот ага угу понял поняла
    ясно отлично супер круто вы вас вам ваш ваша ваше ваши вами ооо оао зао ао пао ип решение решено
    договорились итак кстати
    """
)
# A sentence may begin with these; whatever follows is a name of its own.
OPENERS = NEVER | _listed(
    """
    a about actually after again everyone everything nobody nothing anyone none both either neither all also
    although always am an and another any are as ask at be because been before but by call can could did do does
    don't each email even every finally first for from get give go got guess had has have he her here his how if
    in is it its it's just last later let let's like look make many maybe me meet meeting most my never next not
    now of on once one only or our out over perhaps remember right same say see send she should since some
    someone something sometimes soon still such sure take talk tell that the their then there these they this
    those though time to today tomorrow tonight too two until very was we we'll we're we've were what when where
    which while who why will with would yesterday you you're your а без более больше будем будет был была были
    было быть в ваша вдруг ведь весь во вообще впрочем все всегда всё вчера где да давай давайте даже для до
    другой его ее ей если есть еще ещё её же за завтра зато затем здесь и из или им их к каждый как какая какие
    какой когда конечно короче который кроме кто куда лучше мне может можно мой мы на надо над наконец нам
    напиши нас наш не него недавно ни но нужно о об один он она они опять от очень перед по под позвони пока
    после потом потому почему почти при про просто пусть раз с сам сегодня сейчас сначала снова со совсем
    согласен согласна так такой там тебе теперь то тогда тоже только том три ты у уже хотя чего через что чтобы
    эта эти это этот я
    """
)
LATIN_WORDS = _listed("ok okay bug chat email fix hi lol online pdf please sorry thanks wow yes")
