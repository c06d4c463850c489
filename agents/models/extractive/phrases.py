"""What the organiser says in its own voice, in both languages: everything else is quoted."""

from dataclasses import dataclass

from language.words import Language


@dataclass(frozen=True)
class Phrases:
    quote_marks: tuple[str, str]
    untitled: str
    # research report
    report: str
    report_note: str
    in_short: str
    key_facts: str
    introduction: str
    key_terms: str
    mentions: str
    asked: str
    open_questions: str
    asked_by_source: str
    vague: str
    unexplained: str
    thin: str
    nothing_open: str
    no_facts: str
    # ideas
    ideas: str
    ideas_note: str
    angle: str
    recommended: str
    why: str
    proposed_outline: str
    lead: str
    story: str
    story_why: str
    theme_first: str
    theme_first_why: str
    figures: str
    figures_why: str
    tension: str
    tension_why: str
    voices: str
    voices_why: str
    # article
    note: str
    note_part: str
    note_made_headings: str
    # critique
    critique: str
    critique_note: str
    critique_coverage: str
    findings: str
    no_findings: str
    holds: str
    fix: str
    missing: str
    missing_fix: str
    repeated: str
    repeated_fix: str
    long: str
    long_fix: str
    long_fix_by_hand: str
    unsupported: str
    unsupported_fix: str
    heavy: str
    heavy_fix: str
    length: str
    length_fix: str
    unclear_quantity: str
    unclear_quantity_fix: str
    unclear_abbreviation: str
    unclear_abbreviation_fix: str
    all_supported: str
    no_repeats: str
    all_facts: str
    # self-critique
    no_title: str
    no_note: str
    long_paragraph: str
    thin_section: str
    said_twice: str
    foreign_quote: str
    too_short: str
    # anything else
    only_quotes: str
    nothing_given: str


_ENGLISH = Phrases(
    quote_marks=("“", "”"),
    untitled="Untitled",
    report="Research report",
    report_note="Everything in quotation blocks is copied from the material word for word; nothing else is.",
    in_short="In short",
    key_facts="Key facts by theme",
    introduction="Introduction",
    key_terms="Key terms",
    mentions="mentions",
    asked="What the brief asks for",
    open_questions="Open questions",
    asked_by_source="Asked by the material itself",
    vague="How much exactly is “{word}”?",
    unexplained="What does “{word}” stand for? The material never spells it out",
    thin="“{heading}” has a single statement: is there more to say?",
    nothing_open="None found: every quantity is given and every abbreviation explained.",
    no_facts="The material holds nothing that could be quoted; add to it what the article should tell.",
    ideas="Ideas",
    ideas_note="Angles computed from the material; the quotes are its own words.",
    angle="Angle",
    recommended="recommended",
    why="Why",
    proposed_outline="Proposed outline",
    lead="Lead",
    story="The whole story",
    story_why="the material in its own order, the weightiest theme being “{heading}”",
    theme_first="Starting with “{heading}”",
    theme_first_why="statements in this theme: {count} of {total}",
    figures="In figures",
    figures_why="{count} of {total} statements carry figures, and these stand on their own",
    tension="Where it is hard",
    tension_why="{count} of {total} statements speak of problems, limits or disagreement",
    voices="In their own words",
    voices_why="{count} of {total} statements quote somebody",
    note="This article organises and quotes the brief “{title}”: {used} of its {total} statements, in its own words. "
    "Nothing has been added from other sources.",
    note_part="It covers {kept} of {themes} sections.",
    note_made_headings="The section headings are key terms of the text.",
    critique="Critique",
    critique_note="Computed from the text: {sentences} sentences, {words} words, {average} in an average sentence.",
    critique_coverage="It carries {covered} of the {total} statements of the material.",
    findings="Findings",
    no_findings="None.",
    holds="What holds",
    fix="Fix",
    missing="Missing fact",
    missing_fix="insert it in “{section}”.",
    repeated="Repetition",
    repeated_fix="remove it, the text says this already.",
    long="Long sentence",
    long_fix="split it ({words} words).",
    long_fix_by_hand="shorten it by hand ({words} words, no safe place to split).",
    unsupported="Unsupported statement",
    unsupported_fix="remove it or name a source; the material does not say this.",
    heavy="Unbalanced section",
    heavy_fix="“{section}” takes {share}% of the text; divide or shorten it.",
    length="Length",
    length_fix="{words} words, where the brief asks for {least}–{most}.",
    unclear_quantity="Unclear quantity",
    unclear_quantity_fix="say how much “{word}” is.",
    unclear_abbreviation="Unexplained abbreviation",
    unclear_abbreviation_fix="say what “{word}” stands for.",
    all_supported="Every statement is found in the material.",
    no_repeats="Nothing is said twice.",
    all_facts="No key fact of the material is missing.",
    no_title="The text has no title.",
    no_note="The note on sources is missing.",
    long_paragraph="This paragraph is too long: “{quote}”",
    thin_section="The section “{section}” has a single statement although the material has more.",
    said_twice="This is said twice: “{quote}”",
    foreign_quote="This is quoted but not in the material: “{quote}”",
    too_short="The text has {words} words where the brief asks for at least {least}; the material has more to quote.",
    only_quotes="No language model is configured, so this answer only quotes what was given:",
    nothing_given="No language model is configured, and nothing was given that could be quoted.",
)

_RUSSIAN = Phrases(
    quote_marks=("«", "»"),
    untitled="Без названия",
    report="Исследование",
    report_note="Всё, что стоит в блоках цитат, взято из материала дословно; извне не добавлено ничего.",
    in_short="Коротко",
    key_facts="Ключевые факты по темам",
    introduction="Вступление",
    key_terms="Ключевые слова",
    mentions="упоминаний",
    asked="О чём просит задание",
    open_questions="Открытые вопросы",
    asked_by_source="Вопросы, которые задаёт сам материал",
    vague="Сколько именно скрывается за словом «{word}»?",
    unexplained="Что значит «{word}»? Материал этого не раскрывает",
    thin="О теме «{heading}» сказано одной фразой: есть ли что добавить?",
    nothing_open="Не найдены: все количества названы, все сокращения раскрыты.",
    no_facts="В материале нечего цитировать; добавьте в него то, о чём должна рассказать статья.",
    ideas="Идеи",
    ideas_note="Ракурсы вычислены по материалу; цитаты — его собственные слова.",
    angle="Ракурс",
    recommended="рекомендуется",
    why="Почему",
    proposed_outline="План",
    lead="Лид",
    story="История целиком",
    story_why="материал в его собственном порядке; самая весомая тема — «{heading}»",
    theme_first="Начать с темы «{heading}»",
    theme_first_why="утверждений в этой теме: {count} из {total}",
    figures="В цифрах",
    figures_why="утверждений с цифрами: {count} из {total}; эти понятны сами по себе",
    tension="В чём трудность",
    tension_why="утверждений о трудностях, пределах и спорах: {count} из {total}",
    voices="Своими словами",
    voices_why="утверждений с прямой речью: {count} из {total}",
    note="Статья составлена из материала задания «{title}»: использовано утверждений — {used} из {total}, дословно. "
    "Из других источников ничего не добавлено.",
    note_part="Охвачено разделов: {kept} из {themes}.",
    note_made_headings="Заголовки разделов — ключевые слова текста.",
    critique="Критика",
    critique_note="Вычислено по тексту: предложений — {sentences}, слов — {words}, в среднем {average} слов "
    "в предложении.",
    critique_coverage="Перенесено утверждений материала: {covered} из {total}.",
    findings="Замечания",
    no_findings="Замечаний нет.",
    holds="Что в порядке",
    fix="Исправление",
    missing="Пропущен факт",
    missing_fix="вставить в раздел «{section}».",
    repeated="Повтор",
    repeated_fix="убрать: в тексте это уже сказано.",
    long="Длинное предложение",
    long_fix="разделить (слов: {words}).",
    long_fix_by_hand="сократить вручную (слов: {words}, безопасного места для разделения нет).",
    unsupported="Утверждение без опоры",
    unsupported_fix="убрать или назвать источник: в материале этого нет.",
    heavy="Перекос разделов",
    heavy_fix="раздел «{section}» занимает {share}% текста; разделить или сократить.",
    length="Объём",
    length_fix="слов в тексте: {words}, а задание просит {least}–{most}.",
    unclear_quantity="Неясное количество",
    unclear_quantity_fix="назвать, сколько это — «{word}».",
    unclear_abbreviation="Нераскрытое сокращение",
    unclear_abbreviation_fix="объяснить, что значит «{word}».",
    all_supported="Каждое утверждение есть в материале.",
    no_repeats="Ничто не сказано дважды.",
    all_facts="Ни один ключевой факт материала не пропущен.",
    no_title="У текста нет заголовка.",
    no_note="Нет примечания об источниках.",
    long_paragraph="Слишком длинный абзац: «{quote}»",
    thin_section="В разделе «{section}» одно утверждение, хотя в материале есть ещё.",
    said_twice="Сказано дважды: «{quote}»",
    foreign_quote="Приведено как цитата, но в материале этого нет: «{quote}»",
    too_short="Слов в тексте: {words}, а задание просит не меньше {least}; в материале есть что добавить.",
    only_quotes="Языковая модель не настроена, поэтому ответ лишь цитирует полученное:",
    nothing_given="Языковая модель не настроена, а процитировать нечего.",
)

_BY_LANGUAGE = {Language.ENGLISH: _ENGLISH, Language.RUSSIAN: _RUSSIAN}


def phrases_in(language: Language) -> Phrases:
    return _BY_LANGUAGE[language]


def all_phrases() -> tuple[Phrases, ...]:
    return tuple(_BY_LANGUAGE.values())
