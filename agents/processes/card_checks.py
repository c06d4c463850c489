"""Static checks of a card: what keeps a well-formed card from running, with its place in the file."""

from collections.abc import Callable, Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from agents.configuration.validation import YamlPath, suggestion
from agents.processes.conditions import PARAMS, Condition, InvalidCondition
from agents.processes.graph import asked_by, loops_of, made_of
from agents.processes.parameters import as_text, problem_with
from bus_schema.cards import BRIEF, OUTPUT_VALUES, Card, CardStep

# Names of roles, or also the types of artifacts that each makes.
Roles = Collection[str] | Mapping[str, Collection[str]]
Problem = tuple[YamlPath, str]

_KINDS = ("role", "approve", "wait", "card")
# Names of parts, `ID-ROUND-NUMBER`, are names of steps, which have 64 characters.
_LONGEST_OF_PARTS = 56


def problems_of(card: Card, roles: Roles) -> Iterator[Problem]:
    """Everything that keeps a well-formed card from running, with its place."""
    ids = [step.id for step in card.steps]
    for number, step in enumerate(card.steps):
        for place, message in _step_problems(card, step, roles):
            yield ("steps", number, *place), message
        if step.id in ids[:number]:
            yield ("steps", number, "id"), f"two steps are called {step.id!r}; rename one"
    yield from _result_problems(card)
    yield from _cycles(card)
    for name, parameter in card.parameters.items():
        if parameter.default is not None and (problem := problem_with(parameter, as_text(parameter.default))):
            yield ("parameters", name, "default"), problem


def _step_problems(card: Card, step: CardStep, roles: Roles) -> Iterator[Problem]:
    if step.id == BRIEF:
        yield ("id",), f"{BRIEF!r} is the name of what the run was started with; call the step something else"
    if step.id == PARAMS:
        yield ("id",), f"{PARAMS!r} is the name of the parameters; call the step something else"
    yield from _kind_problems(step, roles)
    yield from _input_problems(card, step)
    until = None if step.repeat is None else step.repeat.until
    for place, text in ((("when",), step.when), (("repeat", "until"), until)):
        if text is not None:
            for problem in _condition_problems(card, text):
                yield place, problem
    if step.for_each is not None:
        yield from _fan_out_problems(card, step)
    if step.repeat is not None:
        yield from _loop_problems(card, step)


def _kind_problems(step: CardStep, roles: Roles) -> Iterator[Problem]:
    kinds = [kind for kind in _KINDS if getattr(step, kind) is not None]
    if len(kinds) > 1:
        yield (kinds[1],), f"a step is one thing: {' or '.join(kinds)}; make two steps of it"
    if kinds and kinds != ["role"]:
        for name in ("produces", "for_each"):
            if getattr(step, name) is not None:
                yield (name,), f"is for steps of a role; this one has `{kinds[0]}:`"
        return
    # In the words of the schema, which cannot know what kind of step it is to be.
    for name, is_there in (("role", step.role), ("instructions", step.instructions), ("produces", step.produces)):
        if not is_there:
            yield (name,), "is missing; add it"
    if step.role is None:
        return
    if step.role not in roles:
        yield ("role",), f"there is no role {step.role!r}{suggestion(step.role, roles)}"
    elif isinstance(roles, Mapping) and step.produces is not None and step.produces not in roles[step.role]:
        yield ("produces",), f"{step.role} makes {', '.join(sorted(roles[step.role]))}, not {step.produces}"


def _input_problems(card: Card, step: CardStep) -> Iterator[Problem]:
    if not step.inputs:
        yield ("inputs",), f"names nothing to work on; leave the field out for [{BRIEF}]"
    known = {BRIEF, *(each.id for each in card.steps)}
    for number, name in enumerate(step.inputs):
        if name not in known:
            yield ("inputs", number), f"no step is called {name!r}{suggestion(name, known)}"
        if name in step.inputs[:number]:
            yield ("inputs", number), f"{name!r} is listed twice; keep one"


def _condition_problems(card: Card, text: str) -> Iterator[str]:
    try:
        references = Condition.parse(text).references
    except InvalidCondition as error:
        yield f"{text!r} {error}"
        return
    steps = {step.id: step for step in card.steps}
    for name, value in references:
        if name == PARAMS:
            if value not in card.parameters:
                yield f"there is no parameter {value!r}; declare it under `parameters:`"
        elif name not in steps:
            yield f"no step is called {name!r}{suggestion(name, steps)}"
        else:
            values = ("approved",) if steps[name].approve else OUTPUT_VALUES
            if value not in values:
                yield f"{name} has no value {value!r}{suggestion(value, values)}"


def _fan_out_problems(card: Card, step: CardStep) -> Iterator[Problem]:
    ids = [each.id for each in card.steps]
    name, _, value = (step.for_each or "").rpartition(".")
    fans_out = [each.id for each in card.steps if each.for_each and each.id != step.id]
    if step.for_each in fans_out:
        if step.for_each not in step.inputs:
            yield ("for_each",), f"makes one of each part of {step.for_each}; put that among the inputs, too"
    elif step.for_each != BRIEF and (value != "items" or name not in ids):
        choices = f"{BRIEF}, a step that has for_each itself, or the list of a step: STEP.items"
        yield ("for_each",), f"is {choices}{suggestion(name or value, ids)}"
    if clash := next((each for each in ids if _is_part(each, step.id)), None):
        yield ("id",), f"the parts of {step.id} are called {step.id}-1, {step.id}-2, …; rename {clash}"
    if len(step.id) > _LONGEST_OF_PARTS:
        yield ("id",), f"the numbers of its parts come behind it: {_LONGEST_OF_PARTS} characters at most"
    if step.id == card.result:
        yield ("for_each",), "this step makes the result, which is one artifact; gather the parts in a step after it"


def _is_part(name: str, of: str) -> bool:
    return name.startswith(f"{of}-") and name.removeprefix(f"{of}-").replace("-", "").isdigit()


def _loop_problems(card: Card, step: CardStep) -> Iterator[Problem]:
    assert step.repeat is not None, "asked of loops alone"
    ids = [each.id for each in card.steps]
    if step.repeat.back_to not in ids:
        yield ("repeat", "back_to"), f"no step is called {step.repeat.back_to!r}{suggestion(step.repeat.back_to, ids)}"
    elif step.id not in {step.repeat.back_to, *_safely(card, lambda: made_of(card, {step.repeat.back_to}))}:  # type: ignore[union-attr]  # it is there
        yield ("repeat", "back_to"), f"{step.id} does not depend on {step.repeat.back_to}, so it cannot send it back"
    others = [each.id for each in card.steps if each.repeat is not None and each.id != step.id]
    body = _safely(card, lambda: loops_of(card).get(step.id, set()))
    if other := next((each for each in others if each in body), None):
        yield ("repeat",), f"the loop contains that of {other}; loops within loops are not possible"


def _safely(card: Card, compute: Callable[[], set[str]]) -> set[str]:
    """Steps by the graph, or none where a condition cannot be read, which is told elsewhere."""
    try:
        return compute()
    except InvalidCondition:
        return set()


def _result_problems(card: Card) -> Iterator[Problem]:
    ids = [step.id for step in card.steps]
    if card.result not in ids:
        yield ("result",), f"no step is called {card.result!r}{suggestion(card.result, ids)}"
    for number, step in enumerate(card.steps):
        if step.id != card.result:
            continue
        if not step.critical:
            yield ("steps", number, "critical"), "this step makes the result, so it is critical; remove the field"
        if step.approve or step.wait:
            yield ("result",), f"{step.id} makes nothing; name a step of a role"


def _cycles(card: Card) -> Iterator[Problem]:
    ids = [step.id for step in card.steps]
    try:
        asked = {step.id: [name for name, _ in asked_by(step, to_begin=True)] for step in card.steps}
    except InvalidCondition:
        return
    needs = {step.id: [name for name in (*step.inputs, *asked[step.id]) if name in ids] for step in card.steps}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        around = " → ".join(error.args[1])
        yield ("steps", ids.index(error.args[1][0]), "inputs"), f"these steps wait for each other: {around}; cut one"
