"""Word lists, English beside Russian, that the text tools share."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP_WORDS = _listed(
    """
    a about above across after again against ago all almost along already also although always am among an and
    another any anyone anything are around as at away back be became because become been before being below between
    both but by came can cannot come could did do does doing done down during each either else enough etc even ever
    every everyone everything few first for from further get gets give given go goes got had has have having he her
    here hers herself him himself his how however i if in instead into is it its itself just keep kept last least
    less let like made make makes many may me might mine more most much must my myself near need never next no
    nobody none nor not nothing now of off often on once one only onto or other others our ours ourselves out over
    own per perhaps put quite rather really said same say says see seen several shall she should since so some
    someone something soon still such take taken than that the their theirs them themselves then there these they
    thing things this those though three through thus to together too took toward towards two under until up upon us
    use used uses using very via was way we well went were what when where whether which while who whole whom whose
    why will with within without would yes yet you your yours yourself yourselves don't doesn't didn't isn't aren't
    wasn't weren't won't can't couldn't wouldn't hasn't haven't it's that's there's they're we're you're i'm i've
    he's she's
    а без более больше будет будто буду будут бы был была были было быть в вам вами вас ваш ваша ваше ваши вдоль
    вдруг ведь весь во вообще вот впрочем все всегда всего всей всем всеми всему всех всю вся всё вы где да давно
    даже два две для до другая другие других другого другой другую его едва ее ей ему если есть еще ещё её ею же за
    затем зато зачем здесь и из или им ими иногда их к каждая каждое каждую каждый каждого каждой как какая какие
    какой каком когда кого кое кроме кто куда ли либо лишь лучше между меня мне много многие может можно мной мог
    могла могли могут мой моя мы на над надо нам нами нас наш наша наше наши не него нее ней некоторые нельзя нем
    несколько нет неё ни нибудь ним ними них ничего но ну о об обо оба однако одна одни одним одно одного одной один
    около он она они оно опять от очень перед по под позже пока после потом потому почему почти при про просто пусть
    раз разве ранее с сам сама сами само самый свое своего своей своем свои своим своих свой свою себе себя сегодня
    сейчас со совсем так такая такие такое такой также там тебе тебя тем теми теперь то тобой тогда того тоже той
    только том тому тот три ту туда тут ты у уж уже хотя чего чем через что чтобы чуть эта эти этим этих это этого
    этой этом этому этот эту я является являются того-то который которая которое которые которого которой которых
    котором которую которым стал стала стало стали имеет имеют нужно должен должна должны делает делают сделали
    сделать
    """
)

# A sentence never ends right after these.
OPEN_ABBREVIATIONS = _listed(
    """
    mr mrs ms dr prof st sr jr rev gen col capt lt sgt fig figs eq vol vols ed eds approx ca cf vs e.g i.e viz jan
    feb mar apr jun jul aug sep sept oct nov dec pp
    т.е т.к т.н напр см ср стр рис табл гл п пп ст ул пр-т просп пл пер д корп кв им акад проф доц инж тов гр ок
    прим св о с
    """
)

# A sentence may end after these; a capital letter decides.
CLOSING_ABBREVIATIONS = _listed(
    """
    etc al inc ltd co corp a.m p.m u.s u.k e.u
    тыс млн млрд трлн г гг в вв н.э т.д т.п др пр руб коп чел ч мин сек км м см мм кг т га шт экз кв.м куб.м
    """
)

# An opening that points back: the sentence makes no sense without the one before.
LEANING_OPENINGS = frozenset(
    tuple(opening.split())
    for opening in """
    it|its|this|that|these|those|they|their|them|he|his|she|her|such|so|then|thus|therefore|hence|but|and|or|nor|yet|
    however|moreover|besides|also|otherwise|instead|meanwhile|afterwards|later|still|nevertheless|nonetheless|
    furthermore|consequently|accordingly|finally|both|neither|either|another|others|the other|the others|the latter|
    the former|the second|the third|the same|the rest|second|third|in addition|in contrast|in other words|
    in the same way|as a result|as well|for example|for instance|for this|for that|that is|of these|of those|of them|
    on the other|at the same time|at that|because of this|because of that|without it|without them|until then|
    since then|after that|before that|here|not all of them|one of them|some of them|most of them|half of them|
    none of them|all of them|each of them|only then|even so

    это|этот|эта|эти|этого|этой|этих|этим|этому|эту|тот|та|те|он|она|оно|они|его|ее|её|их|ему|ей|им|но|однако|а|и|или|
    также|тоже|поэтому|потому|затем|потом|тогда|там|туда|оттуда|здесь|такой|такая|такое|такие|таким|так|зато|впрочем|
    наконец|иначе|причем|причём|притом|кроме того|при этом|то есть|в результате|в итоге|в то же время|вместо этого|
    после этого|до этого|из-за этого|благодаря этому|для этого|с тех пор|до тех пор|с другой стороны|другой|другая|
    другое|другие|второй|вторая|второе|третий|третья|третье|остальные|оба|обе|например|к примеру|именно|среди них|
    один из них|одна из них|часть из них|половина из них|все они|у него|у нее|у неё|у них|с ним|с ней|с ними|к нему|
    к ней|к ним|на нем|на нём|на ней|на них|в нем|в нём|в ней|в них|без него|без нее|без неё|без них|ни один из них|
    тем не менее|тем временем|правда|ведь|вот|не все они
    """.replace("\n", "|").split("|")
    if opening.strip()
)

# Words that point at something named elsewhere: in the first clause of a sentence, that is in the one before.
POINTERS = _listed(
    """
    he him it she them these they this those
    его ее ей ему ею её им ими их него нее ней нем нему неё ним ними них нём он она они оно эта эти этим этими этих
    это этого этой этом этому этот эту
    """
)

# What figures are counted in; named often, but never what a text is about.
MEASURES = _listed(
    """
    april august billion cent day days december february half hour hours january july june march million minute
    minutes month months november number numbers october part parts per percent quarter september third thousand
    time times week weeks year years
    август августа апрель апреля год года годам годов годом году годы декабрь декабря день дней дни дня июль июля
    июнь июня лет май март марта мая месяц месяца месяцев миллион миллиона миллионов минут минута минуты недели
    недель неделя ноябрь ноября октябрь октября половина половины процент процента процентов раз раза рублей рубль
    рубля сентябрь сентября трети треть тысяч тысяча тысячи февраль февраля час часа часов части часть человек
    четверть чисел числа число январь января
    """
)
