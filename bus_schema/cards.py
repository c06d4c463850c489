"""Process cards: steps, their roles, inputs and outputs."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bus_schema.artifacts import ArtifactType, Retention, StepId
from bus_schema.identities import ServiceName
from bus_schema.messages import Query, StrictValue, Value

CardName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
ParameterName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]

BRIEF = "brief"
# Parts that a step with `for_each` is made in, at most.
MOST_ITEMS = 200
# What models are told to write in; `auto` is the language of the brief, `any` is not looked at.
StepLanguage = Literal[
    "auto", "any", "ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "uk", "zh"
]
Relevance = Literal["required", "off"]


ParameterType = Literal["string", "integer", "number", "boolean"]
# Values of a step's output that conditions may ask about; `count` is that of the items, `made` whether there is one.
OUTPUT_VALUES = ("satisfied", "answer", "items", "count", "made")
DURATION = r"^[1-9][0-9]{0,6}[smhd]$"


class Parameter(StrictValue):
    """A parameter of a card: one of `choices`, if there are any; required if it has no default."""

    type: ParameterType = "string"
    default: bool | int | float | str | None = None
    description: str = Field(default="", max_length=500)
    choices: tuple[str, ...] = Field(default=(), max_length=50)


class Repeat(StrictValue):
    """Loop: the steps from `back_to` to the step that has it are repeated until the condition holds."""

    back_to: StepId
    until: str = Field(min_length=1, max_length=500)
    max_rounds: int = Field(default=3, ge=2, le=20)


class CardStep(StrictValue):
    """One step of a card; `inputs` names earlier steps, or `brief` for the input of the run.

    It is work for a `role`, or one of: `approve`, a question to a person; `wait`, a time such as `10m`; `card`, the
    steps of another card. If the condition in `when` does not hold, the step is skipped. `for_each` runs the step once
    for each input of the run (`brief`), each part of another such step (`STEP`), or each item of a list (`STEP.items`).
    Without `memory`, nothing is searched for this step, even if its role remembers. `timeout_s` counts from the start
    of the work; before that, the step may wait in the role's queue for `queue_timeout_s`.
    An output is not a result if it is in a language other than `language`, or if `relevance` is required and it has
    nothing to do with its inputs; `relevance` is the role's by default.
    """

    id: StepId
    role: ServiceName | None = None
    instructions: str = Field(default="", max_length=4000)
    inputs: tuple[StepId, ...] = (BRIEF,)
    produces: ArtifactType | None = None
    critical: bool = True
    timeout_s: float = Field(default=1440, gt=0, le=1500)
    queue_timeout_s: float = Field(default=3600, ge=0, le=7 * 86400)
    attempts: int = Field(default=3, ge=1, le=10)
    memory: bool = True
    language: StepLanguage = "auto"
    relevance: Relevance | None = None
    when: str | None = Field(default=None, min_length=1, max_length=500)
    for_each: str | None = Field(default=None, min_length=1, max_length=100)
    repeat: Repeat | None = None
    approve: str | None = Field(default=None, min_length=1, max_length=1000)
    wait: str | None = Field(default=None, pattern=DURATION)
    card: CardName | None = None

    @property
    def worker(self) -> str:
        """The service that does it: its role, or the orchestrator itself."""
        return self.role or "orchestrator"

    @property
    def is_plain(self) -> bool:
        """Whether it is a role's work and nothing else."""
        return not (self.when or self.for_each or self.repeat or self.approve or self.wait)


class Card(StrictValue):
    """A process card: roles, steps and their inputs; steps without a path between them run in parallel.

    `retention` is how long a run's artifacts are kept after its end, at most. A run whose models have used
    `budget_tokens` is paused until a person lets it continue with as many again. A `public` card is named to everybody
    who reads the agent card.
    """

    name: CardName
    description: str = Field(default="", max_length=1000)
    parameters: dict[ParameterName, Parameter] = Field(default={}, max_length=50)
    steps: tuple[CardStep, ...] = Field(min_length=1, max_length=50)
    result: StepId
    artifact_deadline_s: float = Field(default=900, gt=0, le=7 * 86400)
    retention: Retention | None = None
    budget_tokens: int | None = Field(default=None, ge=1)
    public: bool = False


class CardHead(Value):
    """A card that can be started by name, and its parameters; `problem` says why it cannot be started now."""

    name: CardName
    description: str = ""
    parameters: dict[ParameterName, Parameter] = Field(default={})
    problem: str = ""
    public: bool = False


class Cards(Value):
    """Cards by name: those shipped with MindBus and the operator's own."""

    items: tuple[CardHead, ...]


class ListCards(Query[Cards], domain="process", action="list_cards", service="orchestrator"):
    """List the cards that can be started by name."""
