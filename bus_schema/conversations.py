"""Commands for storage: messages, fragments and dialogues."""

from typing import Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from bus_schema.dialogue import (
    DialogueFragment,
    DialogueMessage,
    DialogueMessageId,
    DialogueState,
    FragmentId,
    MessageKind,
)
from bus_schema.episodes import RawLogIds, SearchId
from bus_schema.identities import UserId
from bus_schema.message_parts import Rating, is_cut_off
from bus_schema.messages import Cause, Command, Event, Nothing, Page, Query, Value
from bus_schema.replies import ReplyBatch


class Saved(Value):
    """The message is stored; `buffered` counts the messages that are not in a fragment yet.

    `position` is its place in the dialogue, counted from 1: a gap means that somebody else has spoken, or that the
    dialogue was erased.
    """

    message_id: DialogueMessageId
    is_new: bool = True
    buffered: int = Field(default=0, ge=0)
    position: int | None = Field(default=None, ge=1)


class SaveMessage(DialogueMessage, Command[Saved], domain="storage", action="save_message"):
    """Store a message; repeating the id is a no-op with the same words and a conflict with other words."""


MAX_SAVED = 100


class SaveMessages(Command[ReplyBatch], domain="storage", action="save_messages"):
    """Store messages of any dialogues, each as `save_message` does; a refused one does not stop the others.

    `causes` are those of the messages, in the same order, null for a message without one.
    """

    messages: tuple[DialogueMessage, ...] = Field(min_length=1, max_length=MAX_SAVED)
    causes: tuple[Cause | None, ...] = Field(min_length=1, max_length=MAX_SAVED)

    @model_validator(mode="after")
    def _has_a_cause_for_each(self) -> Self:
        if len(self.causes) != len(self.messages):
            raise ValueError("causes has an entry for each message, null where there is none")
        return self


class MessagePage(Page[DialogueMessage]):
    """Messages in the order in which they were stored, or reversed, with the cursor of the next page."""


class GetMessages(Query[MessagePage], domain="storage", action="get_messages"):
    """Read a user's dialogue from its beginning (`oldest`) or from its end (`newest`)."""

    user_id: UserId
    since: AwareDatetime | None = None
    order: Literal["oldest", "newest"] = "oldest"
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class GetMessage(Query[DialogueMessage], domain="storage", action="get_message"):
    """Read one message of a user's dialogue."""

    user_id: UserId
    message_id: DialogueMessageId


class FragmentSaved(Value):
    """The fragment is stored; its messages belong to no other fragment."""

    fragment_id: FragmentId


class SaveDialogueFragment(Command[FragmentSaved], domain="storage", action="save_dialogue_fragment"):
    """Store a fragment and remove its messages from the buffer; repeating the id changes nothing."""

    fragment: DialogueFragment


class GetDialogueFragment(Query[DialogueFragment], domain="storage", action="get_dialogue_fragment"):
    """Read a fragment with its messages, or with the reference to them."""

    fragment_id: FragmentId


class ActiveDialogues(Page[DialogueState]):
    """Dialogues with messages that are not in a fragment yet, with the cursor of the next page."""


class GetAllActiveDialogues(Query[ActiveDialogues], domain="storage", action="get_all_active_dialogues"):
    """Read the buffers of all dialogues, of one, or of those silent since a given time."""

    user_id: UserId | None = None
    silent_since: AwareDatetime | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=20, ge=1, le=100)


def may_be_rated(message: DialogueMessage) -> bool:
    """Whether a message is an answer of the assistant that is whole: no notification, nothing that was cut off."""
    is_whole = not is_cut_off(message.content or "")
    return message.role == "assistant" and message.kind is MessageKind.NATIVE and is_whole


class RateAnswer(Command[Nothing], domain="storage", action="rate_answer"):
    """Say whether an answer of the assistant was helpful; without a rating, the one given before is withdrawn."""

    user_id: UserId
    message_id: DialogueMessageId
    rating: Rating | None = None


class AnswerRated(Event, topic="dialogue", name="answer_rated"):
    """A user has rated an answer, or has withdrawn the rating.

    `search_id` is the search of long-term memory behind the answer, `used` are the turns that the answer draws on.
    """

    user_id: UserId
    message_id: DialogueMessageId
    rating: Rating | None = None
    rated_at: AwareDatetime
    search_id: SearchId | None = None
    used: RawLogIds = ()


class Dialogue(Value):
    """A dialogue with one user; `is_active` while some of its `messages` are not in a fragment yet."""

    user_id: UserId
    last_activity: AwareDatetime
    messages: int = Field(ge=0)
    is_active: bool


class DialoguePage(Page[Dialogue]):
    """Dialogues, most recently active first, with the cursor of the next page."""


class ListDialogues(Query[DialoguePage], domain="storage", action="list_dialogues"):
    """List all dialogues, inactive ones included, or that of one user."""

    user_id: UserId | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class MessageStored(DialogueMessage, Event, topic="dialogue", name="message_stored"):
    """A message of a dialogue was stored, whoever sent it and whether or not a person gets to see it."""
