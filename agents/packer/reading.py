"""What a language model is to answer when it packs."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Read(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReadPoint(_Read):
    """A sentence, or the words of a decision, with the numbers of its turns."""

    text: str
    turns: list[int]


class ReadEntity(_Read):
    """Something that is named, with the numbers of the turns that name it."""

    name: str
    kind: Literal["person", "place", "organization", "thing", "date", "amount"]
    turns: list[int]


class ReadWarm(_Read):
    """What questions can be answered from."""

    summary: str
    key_points: list[ReadPoint] = Field(max_length=60)
    entities: list[ReadEntity] = Field(max_length=100)
    decisions: list[ReadPoint] = Field(max_length=40)


class ReadCold(_Read):
    """What tells whether to look deeper."""

    headline: str
    tags: list[str] = Field(max_length=100)
