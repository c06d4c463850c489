"""Word lists, English beside Russian: stop words, abbreviations, openings, small talk, capitalised words."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words without content of their own, which keywords and similarity leave out.
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

# The few that a search leaves out of a query: an index keeps all words, so this list may not grow.
SEARCH_STOP_WORDS = _listed(
    """
    a about all am an and any are as at be been but by can could did do does for from had has have he her him his how
    i if in into is it its me my no not of on one or our she should so some than that the their them then there these
    they this those to up us was we were what when where which who whom whose why will with would you your
    а без более будет будут бы был была были было быть в вам вас ведь во вот все всё вы где да для до его ее её ей если
    есть еще ещё же за зачем и из или им их к как какая какие каким какими каких какой каком какому какое какую ко когда
    кого кому которая которое которые который кто куда ли либо мне может можно мы на над нам нас не него нее неё нет ни
    них но ну о об он она они оно от перед по под почему при про с сколько со так также такой там то того тоже той
    только том тот ты у уже чего чей чем через что чтобы чья эта эти это этого этой этом этот эту я
    """
)

# A sentence never ends right after these: something always follows them.
OPEN_ABBREVIATIONS = _listed(
    """
    mr mrs ms dr prof st sr jr rev gen col capt lt sgt fig figs eq vol vols ed eds approx dept est ca cf vs e.g i.e
    viz jan feb mar apr jun jul aug sep sept oct nov dec pp
    т.е т.к т.н напр см ср стр рис табл гл п пп ст ул пр-т просп пл пер д корп кв им акад проф доц инж тов гр ок
    прим св пос обл о с
    """
)

# A sentence may end after these; a capital letter decides.
CLOSING_ABBREVIATIONS = _listed(
    """
    etc al inc ltd co corp a.m p.m u.s u.k e.u
    тыс млн млрд трлн н.э т.д т.п др пр руб коп чел мин сек см мм т га шт экз кв.м куб.м
    """
)

# A sentence may end after these where they stand behind a number.
UNIT_ABBREVIATIONS = _listed("p m h s г гг в вв м км кг ч л")

# These lead to a number; before anything else they are words that end a sentence.
ABBREVIATIONS_BEFORE_NUMBERS = _listed("no nos")

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
    april august billion cent cents day days december dollar dollars euro euros february half hour hours january
    july june march million minute minutes month months november number numbers october part parts per percent pound
    pounds quarter september third thousand time times week weeks year years
    август августа апрель апреля год года годам годов годом году годы декабрь декабря день дней дни дня доллар
    доллара долларов евро июль июля июнь июня лет май март марта мая месяц месяца месяцев миллион миллиона миллионов
    минут минута минуты недели недель неделя ноябрь ноября октябрь октября половина половины процент процента
    процентов раз раза рублей рубль рубля сентябрь сентября трети треть тысяч тысяча тысячи февраль февраля час часа
    часов части часть человек четверть чисел числа число январь января
    """
)

# Words of every conversation, which tell nothing about this one.
SMALL_TALK = _listed(
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

# Capitalised for other reasons than being a name.
NEVER_NAMES = _listed(
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
# A sentence may begin with these; a capitalised word behind them is a name of its own.
SENTENCE_OPENERS = NEVER_NAMES | _listed(
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

# Sentences of these words, which begin with one of the verbs, say no more than how to answer.
ANSWERING_VERBS = _listed(
    """
    answer be give include keep limit list mention name reply respond tell use write
    будь будьте дай дайте напиши напишите назови назовите ограничься ограничьтесь ответь ответьте перечисли перечислите
    пиши пишите упомяни упомяните уложись уложитесь
    """
)
ANSWER_FORM_WORDS = ANSWERING_VERBS | _listed(
    """
    a all an and at brief briefly bullet bullets but concise concisely detail detailed details do don't each
    eight eleven every exactly example examples fewer five four in it item items its just least less line lines me more
    most nine no not of one only or paragraph paragraphs per please point points possible response sentence
    sentences seven short shortly simple simply six ten than the them thing things this three to twelve two
    up us with word words your
    абзац абзаца абзаце без более больше в во восемь все два две двумя двух девять десять десяти до его и из или их
    каждый коротко короток краток кратко лишь менее меньше мне на нам не ни но один одна одним одно одной одном ответ
    по подробно подробностей пожалуйста предложение предложением предложении предложений предложениями
    предложения пример примера примеры просто пункт пункта пунктами пункты пунктов пяти пять ровно с свой семь сжато
    слов слова словами слово список строк строка строки только три тремя трех трёх чем четыре шести шесть это
    """
)
# Words of questions for an overview, or an order, of what was talked of. These are forms, not stems: what has developed
# is no development.
OVERVIEW_WORDS = _listed(
    """
    across along aspect aspects bring brought brief changed clear complete comprehensive concise conversation
    conversations detailed developed different discuss discussed discussing discussion discussions entire evolve evolved
    give list mention mentioned over overall progressed provide shift shifted show talked tell through throughout time
    unfolded up various walk way
    аспект аспектах аспекты беседа беседе беседы говорили дай дайте краткий менялось обсуждали обсудили обсуждать
    обсуждение обсуждений обсуждения подробный развивалось разговор разговора разговоре разговоров разговоры разных
    разные расскажи расскажите темах упоминал упоминала упоминали упомянул упомянула
    """
)
# Those of "How did my focus on … develop?", which are topics elsewhere.
COURSE_WORDS = _listed("change develop focus progress")

# Beside a time, they ask what was then: «What happened in May?»
EVENT_WORDS = _listed(
    """
    happen happened happening event events occur occurred go going went on talk talked talking discuss discussed say
    said speak spoke chat mention mentioned tell told new occupied busy with doing
    произошло происходило случилось случалось делать делал делала делали сделал сделали говорить говорил говорила
    говорили сказал обсуждать обсуждали обсудили событие события нового расскажи беседовали занимались занимался
    """
)
# Those that ask how often something was, or was said.
COUNTING_WORDS = _listed(
    """
    often frequently many times occasions number count every each mention mentioned bring brought refer referred talk
    talked discuss discussed say said speak spoke spoken ever go goes going went gone
    часто насколько много раз случаи каждый упоминать упоминал упоминала упоминали упомянул говорить говорил говорила
    говорили рассказывал рассказывала обсуждали год year
    """
)
