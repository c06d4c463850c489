"""Process cards: steps, their roles, inputs and outputs."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bus_schema.artifacts import ArtifactType, Retention, StepId
from bus_schema.identities import ServiceName
from bus_schema.messages import StrictValue

CardName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]

BRIEF = "brief"
# What models are told to write in; `auto` is the language of the brief, `any` is not looked at.
StepLanguage = Literal[
    "auto", "any", "ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "uk", "zh"
]
Relevance = Literal["required", "off"]


class CardStep(StrictValue):
    """One step of a card; `inputs` names earlier steps, or `brief` for the input of the run.

    Without `memory`, nothing is searched for this step, even where its role remembers.
    An output in another language than `language`, or that has nothing to do with its inputs where `relevance` is
    required, is no result; `relevance` is the role's by default.
    """

    id: StepId
    role: ServiceName
    instructions: str = Field(min_length=1, max_length=4000)
    inputs: tuple[StepId, ...] = (BRIEF,)
    produces: ArtifactType
    critical: bool = True
    timeout_s: float = Field(default=1440, gt=0, le=1500)
    attempts: int = Field(default=3, ge=1, le=10)
    memory: bool = True
    language: StepLanguage = "auto"
    relevance: Relevance | None = None


class Card(StrictValue):
    """A process card: roles, steps and their inputs; steps without a path between them run in parallel.

    `retention` is how long a run's artifacts are kept after its end, at most.
    """

    name: CardName
    description: str = Field(default="", max_length=1000)
    steps: tuple[CardStep, ...] = Field(min_length=1, max_length=50)
    result: StepId
    artifact_deadline_s: float = Field(default=900, gt=0, le=7 * 86400)
    retention: Retention | None = None
