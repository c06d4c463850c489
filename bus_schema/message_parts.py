"""Parts of a message in a dialogue: attached files; the memory and the model that an answer was made with."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from bus_schema.artifacts import ArtifactRef
from bus_schema.episodes import EpisodeId, RawLogIds
from bus_schema.history import SubagentName
from bus_schema.messages import Value

FileName = Annotated[str, StringConstraints(pattern=r"^[^/\\\x00-\x1f]{1,200}$")]
# Memory did not answer in time; it was not there.
MemoryAbsence = Literal["late", "away"]
Rating = Literal["helpful", "unhelpful"]
# How an answer ends that is not whole, in English and in Russian.
CUT_OFF_MARKS = ("… [cut off]", "… [ответ оборван]")


def is_cut_off(text: str) -> bool:
    """Whether an answer ends with such a mark."""
    return text.endswith(CUT_OFF_MARKS)


class Attachment(Value):
    """A file that a user has attached to a message: its name and the artifact that holds it."""

    name: FileName
    ref: ArtifactRef


Attachments = Annotated[tuple[Attachment, ...], Field(max_length=10)]


class ModelUse(Value):
    """Model that wrote an answer, with the tokens of all its calls for that answer, without sub-agents."""

    model_name: str = Field(max_length=200)
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class DelegatedTask(Value):
    """A task given to a sub-agent for an answer, with the result as the assistant received it."""

    subagent: SubagentName
    task: str
    response: str


class RecalledEpisode(Value):
    """An earlier episode whose turns, or summary, the assistant was shown for an answer.

    `time` is that of its first turn; `used` are the turns that the answer draws on.
    """

    episode_id: EpisodeId
    time: AwareDatetime
    raw_log_ids: RawLogIds = Field(default=(), max_length=1000)
    used: RawLogIds = Field(default=(), max_length=1000)
    is_uncertain: bool = False


RecalledEpisodes = Annotated[tuple[RecalledEpisode, ...], Field(max_length=100)]
