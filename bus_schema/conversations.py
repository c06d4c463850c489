"""What is said to storage about dialogues."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.dialogue import DialogueFragment, DialogueMessage, DialogueMessageId, DialogueState, FragmentId
from bus_schema.identities import UserId
from bus_schema.messages import Command, Event, Query


class Saved(BaseModel):
    """The message is there for good."""

    model_config = ConfigDict(frozen=True)
    message_id: DialogueMessageId


class SaveMessage(DialogueMessage, Command[Saved], domain="storage", action="save_message"):
    """Keep a message; the same id again changes nothing, with other words it is a conflict."""


class MessagePage(BaseModel):
    """Messages in the order in which they were stored, or its reverse, with the cursor of the next page."""

    model_config = ConfigDict(frozen=True)
    items: tuple[DialogueMessage, ...]
    next_cursor: str | None = None


class GetMessages(Query[MessagePage], domain="storage", action="get_messages"):
    """Read a user's dialogue: from its beginning (`oldest`), or from its end (`newest`)."""

    user_id: UserId
    since: AwareDatetime | None = None
    order: Literal["oldest", "newest"] = "oldest"
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class FragmentSaved(BaseModel):
    """The fragment is there for good: its messages belong to no other."""

    model_config = ConfigDict(frozen=True)
    fragment_id: FragmentId


class SaveDialogueFragment(Command[FragmentSaved], domain="storage", action="save_dialogue_fragment"):
    """Keep a fragment, which empties the buffer of its messages; the same id again changes nothing."""

    fragment: DialogueFragment


class ActiveDialogues(BaseModel):
    """Dialogues of which something is still to become a fragment, with the cursor of the next page."""

    model_config = ConfigDict(frozen=True)
    items: tuple[DialogueState, ...]
    next_cursor: str | None = None


class GetAllActiveDialogues(Query[ActiveDialogues], domain="storage", action="get_all_active_dialogues"):
    """Read the buffers of all dialogues, or of those that have been silent since a moment."""

    silent_since: AwareDatetime | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=20, ge=1, le=100)


class MessageStored(DialogueMessage, Event, topic="dialogue", name="message_stored"):
    """A message of a dialogue is kept, whoever said it and whether or not a person gets to see it."""
