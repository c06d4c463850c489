"""What a language model thinks of a notification, within the bounds that the rules leave it."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.context.desk import Decision
from agents.evidence import borne_out
from agents.guides import shipped_guide
from agents.models.language_model import LanguageModel
from agents.models.prompt import Material, lay_out
from agents.models.structured import attempt_as
from bus_schema.dialogue import DialogueMessage, MessageKind
from bus_schema.notification import NotificationGenerated, Urgency

_MOST_DEFERRED = timedelta(hours=4)
_TALK_MESSAGES = 8
_LONGEST_CHARS = 1000
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


class Judgement(BaseModel):
    """A model's decision on one notification."""

    model_config = ConfigDict(extra="forbid")
    decision: Literal["deliver", "defer", "ignore"]
    defer_minutes: int | None = Field(ge=0, le=24 * 60)
    reason: str = Field(max_length=300)
    message: str = Field(max_length=_LONGEST_CHARS)


async def judged(
    notification: NotificationGenerated, talk: Sequence[DialogueMessage], model: LanguageModel, now: datetime
) -> tuple[Decision | None, str]:
    """A decision other than to deliver, if the model has one that it may take; the words to deliver it in."""
    guide = shipped_guide("context")
    matter = f"{notification.message}\n{notification.context}\nurgency: {notification.urgency}"
    materials = [
        Material(notification.notification_id, "notification", matter),
        Material("talk", "talk", _told(talk) or "nothing has been said"),
    ]
    asked = lay_out("notification", "write", guide.system, "Decide as JSON.", materials)
    judgement = await attempt_as(model, asked, Judgement, guide.model)
    if judgement is None:
        return None, notification.message
    message = judgement.message if _is_faithful(judgement.message, notification) else notification.message
    return _allowed(judgement, notification, now), message


def _allowed(judgement: Judgement, notification: NotificationGenerated, now: datetime) -> Decision | None:
    """What is urgent goes out; only what is unimportant may be dropped; nothing is put off until it is stale."""
    reason = f"model: {judgement.reason}"
    if judgement.decision == "ignore" and notification.urgency is Urgency.LOW:
        return Decision(notification_id=notification.notification_id, verdict="ignore", reason=reason)
    if judgement.decision == "defer" and judgement.defer_minutes and notification.urgency is not Urgency.HIGH:
        until = now + min(timedelta(minutes=judgement.defer_minutes), _MOST_DEFERRED)
        if notification.expires is None or until < notification.expires:
            return Decision(notification_id=notification.notification_id, verdict="defer", reason=reason, until=until)
    return None


def _is_faithful(message: str, notification: NotificationGenerated) -> bool:
    """Whether the words say what was to be said: every number kept, nothing made up."""
    given = f"{notification.message} {notification.context}"
    kept = set(_NUMBER.findall(notification.message)) <= set(_NUMBER.findall(message))
    return (
        bool(message.strip()) and kept and borne_out(notification.message, message) and _adds_no_number(message, given)
    )


def _adds_no_number(message: str, given: str) -> bool:
    return set(_NUMBER.findall(message)) <= set(_NUMBER.findall(given))


def _told(talk: Sequence[DialogueMessage]) -> str:
    shown = [each for each in talk if each.kind is not MessageKind.HIDDEN][-_TALK_MESSAGES:]
    return "\n".join(f"{each.role}: {each.content}" for each in shown)
