"""The ideator's paper: angles to choose from, each with an outline the writer will follow."""

from dataclasses import replace

from agents.models.extractive.angles import Angle, angles, lead, theme_name
from agents.models.extractive.phrases import Phrases, all_phrases, phrases_in
from agents.models.extractive.source import Source
from agents.models.extractive.statements import wording
from language.markdown import Kind, parse, quoted


def write_ideas(source: Source) -> str:
    phrases = phrases_in(source.language)
    found = angles(source)
    lines = [f"# {phrases.ideas}: {source.title or phrases.untitled}", "", f"*{phrases.ideas_note}*"]
    if not found:
        lines += ["", phrases.no_facts]
    for number, angle in enumerate(found, start=1):
        lines += ["", *_angle(source, angle, number, phrases)]
    return "\n".join(lines) + "\n"


def chosen_angle(source: Source, paper: str) -> Angle | None:
    """The angle that the paper recommends, with the outline as the paper has it now: people may have edited it."""
    offered = {angle.name: angle for angle in angles(source)}
    if not offered:
        return None
    blocks = parse(paper)
    headings = [at for at, block in enumerate(blocks) if block.kind is Kind.HEADING and block.level == 2]
    recommended = tuple(f"({phrases.recommended})" for phrases in all_phrases())
    start = next((at for at in headings if blocks[at].text.endswith(recommended)), headings[0] if headings else 0)
    end = next((later for later in headings if later > start), len(blocks))
    named = [angle for name, angle in offered.items() if blocks and f": {name}" in blocks[start].text]
    angle = max(named, key=lambda each: len(each.name), default=next(iter(offered.values())))
    outline = [block.text for block in blocks[start:end] if block.kind is Kind.ITEM and block.marker[0].isdigit()]
    return replace(angle, themes=_themes_named(source, outline) or angle.themes)


def _themes_named(source: Source, outline: list[str]) -> tuple[int, ...]:
    names = {wording(theme.heading): at for at, theme in enumerate(source.themes) if theme.heading}
    named = [names[wording(line)] for line in outline if wording(line) in names]
    introduction = [at for at, theme in enumerate(source.themes) if not theme.heading] if named else []
    return tuple(dict.fromkeys([*introduction, *named]))


def _angle(source: Source, angle: Angle, number: int, phrases: Phrases) -> list[str]:
    mark = f" ({phrases.recommended})" if number == 1 else ""
    lines = [f"## {phrases.angle} {number}: {angle.name}{mark}", "", f"{phrases.why}: {angle.why}."]
    for passage in angle.quotes:
        lines += ["", quoted(passage.text)]
    outline = [phrases.lead] if lead(source) else []
    outline += [angle.name] if angle.opening else []
    outline += [theme_name(source, theme) for theme in angle.themes if source.themes[theme].heading]
    lines += ["", f"{phrases.proposed_outline}:", ""]
    lines += [f"{at}. {line}" for at, line in enumerate(outline or [phrases.introduction], start=1)]
    return lines
