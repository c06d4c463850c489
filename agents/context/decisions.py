"""Decisions on notifications: deliver now, defer, merge or ignore, by rules first, then by a language model."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.context.preferences import DecisionContext
from agents.context.state import Delivery, NotificationDecision, NotificationState
from agents.fragments import is_supported
from agents.models.language_model import LanguageModel, try_complete_as
from agents.models.prompt import Material, build_prompt
from bus_schema.dialogue import DialogueMessage, MessageKind
from bus_schema.notification import NotificationGenerated, Urgency
from language.statements import numbers_in
from language.words import Language, language_of, terms

_HOUR = timedelta(hours=1)
_SAME_ABOUT_FOR = timedelta(hours=24)
_SAME_WORDS_FOR = timedelta(hours=6)
_SAME_WORDS = 0.8
_MERGED_WITHIN = timedelta(minutes=15)
_MOST_DEFERRED = timedelta(hours=4)
_TALK_MESSAGES = 8
_LONGEST_CHARS = 1000
_MOST_MERGED = 5
# Each at a moment of its own, whatever its words.
_ASKED_FOR = " reminder"
# Two runs of a card ask the same question; each waits for its own answer.
_OF_RUNS = "orchestrator"
_REMINDS = ("due_soon", "overdue", "reminder", "due_now")
_MOST_MERGED_CHARS = 6000
_LEADS = {
    Language.ENGLISH: "Several things at once.",
    Language.RUSSIAN: "Сразу несколько новостей.",
}


Rulings = tuple[NotificationState, tuple[NotificationDecision, ...], Delivery | None]


class ContextAgent:
    """Decides by rules, then by a language model, where there is one; says why."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def handle(
        self,
        notification: NotificationGenerated,
        state: NotificationState,
        context: DecisionContext,
        talk: Sequence[DialogueMessage] = (),
    ) -> Rulings:
        """Decide on a notification; a repeated one meets the same decision."""
        known = state.decision_on(notification.notification_id)
        if known:
            return state, (known,), state.delivery_of(notification.notification_id)
        return await self._ruled([notification], state, context, talk)

    async def review(
        self, state: NotificationState, context: DecisionContext, talk: Sequence[DialogueMessage] = ()
    ) -> Rulings:
        """Decide anew on everything that is due; what is delivered goes out as one message."""
        due = _at_once(each.notification for each in state.due(context.now))
        return await self._ruled(due, state, context, talk)

    async def _ruled(
        self,
        notifications: Sequence[NotificationGenerated],
        state: NotificationState,
        context: DecisionContext,
        talk: Sequence[DialogueMessage],
    ) -> Rulings:
        decisions: list[NotificationDecision] = []
        going: list[tuple[NotificationGenerated, str]] = []
        for notification in notifications:
            decision, words = decide_by_rules(notification, state, context), notification.message
            if decision.verdict == "deliver":
                other, words = await decide_by_model(notification, talk, self._model, context.now)
                decision = other or decision
            if decision.verdict == "deliver":
                going.append((notification, words))
            state = state.with_decision(decision, notification)
            decisions.append(decision)
        if not going:
            return state, tuple(decisions), None
        delivery = _delivery(going)
        told = (notification for notification, _ in going)
        return state.with_delivery(delivery, told, context.now), tuple(decisions), delivery


def _at_once(notifications: Iterable[NotificationGenerated]) -> list[NotificationGenerated]:
    """At most 5 notifications with 6,000 characters; the rest stays due."""
    taken: list[NotificationGenerated] = []
    for notification in notifications:
        length = len(notification.message) + sum(len(each.message) for each in taken)
        if taken and (len(taken) == _MOST_MERGED or length > _MOST_MERGED_CHARS):
            break
        taken.append(notification)
    return taken


def _delivery(going: Sequence[tuple[NotificationGenerated, str]]) -> Delivery:
    first, *others = (notification for notification, _ in going)
    messages = [words for _, words in going]
    if others:
        lead = _LEADS[language_of(" ".join(messages))]
        listed = (f"{number}) {words}" for number, words in enumerate(messages, start=1))
        message = " ".join((lead, *listed))
    else:
        message = messages[0]
    return Delivery(
        to_user=first.to_user,
        notification_id=first.notification_id,
        merged=tuple(each.notification_id for each in others),
        message=message,
        context="\n".join(filter(None, (notification.context for notification, _ in going)))[:8000],
    )


def decide_by_rules(
    notification: NotificationGenerated, state: NotificationState, context: DecisionContext
) -> NotificationDecision:
    """The first rule that has something to say decides."""
    ignored = _needless(notification, state, context)
    if ignored:
        return _decision(notification, "ignore", ignored)
    if notification.urgency is Urgency.HIGH:
        return _decision(notification, "deliver", "urgent")
    wait = _wait(notification, state, context)
    if wait is None:
        return _decision(notification, "deliver", "nothing speaks against it")
    until, reason, is_firm = wait
    if notification.expires and notification.expires <= until:
        if is_firm:
            return _decision(notification, "ignore", f"{reason}, by then it is stale")
        return _decision(notification, "deliver", f"would be stale if it waited ({reason})")
    return _deferred(notification, state, until, reason)


def _needless(notification: NotificationGenerated, state: NotificationState, context: DecisionContext) -> str:
    if notification.expires and notification.expires <= context.now:
        return f"stale: expired at {notification.expires:%Y-%m-%d %H:%M}"
    settled = _subjects(notification) & set(state.settled)
    if settled:
        return f"settled meanwhile: {', '.join(sorted(settled))}"
    for told in reversed(state.told):
        if _is_repeated(notification, told.about, told.message, context.now - told.at):
            return f"the same as {told.notification_id}, told at {told.at:%Y-%m-%d %H:%M}"
    for waiting in state.waiting:
        other = waiting.notification
        is_other = other.notification_id != notification.notification_id
        if is_other and _is_repeated(notification, other.about, other.message, timedelta()):
            return f"the same as {other.notification_id}, which waits until {waiting.until:%Y-%m-%d %H:%M}"
    return ""


def _wait(
    notification: NotificationGenerated, state: NotificationState, context: DecisionContext
) -> tuple[datetime, str, bool] | None:
    """End of the wait, its reason, and whether the notification is dropped rather than delivered before it."""
    quiet, habits = context.end_of_quiet, context.habits
    if quiet:
        return quiet, f"quiet hours until {quiet:%H:%M}", True
    if notification.urgency is Urgency.LOW and context.last_activity:
        rested = context.last_activity + context.span(habits.pause)
        if rested > context.now:
            return rested, "waits for a pause in the talk", True
    last, gap, hour = max((told.at for told in state.told), default=None), context.span(habits.gap), context.span(_HOUR)
    if last and last + gap > context.now:
        return last + gap, "gathers with what comes close after another", False
    recent = state.delivered_since(context.now - hour)
    if len(recent) >= habits.most_per_hour:
        frees = sorted(told.at for told in recent)[-habits.most_per_hour] + hour
        return frees, f"more than {habits.most_per_hour} an hour", False
    return None


def _deferred(
    notification: NotificationGenerated, state: NotificationState, until: datetime, reason: str
) -> NotificationDecision:
    """Defer, or merge into a notification that waits for about the same time."""
    expires = notification.expires
    for waiting in state.waiting:
        other = waiting.notification.notification_id
        is_near = abs(waiting.until - until) <= _MERGED_WITHIN and waiting.until >= until
        is_near = is_near and (expires is None or waiting.until < expires)
        if other != notification.notification_id and is_near:
            return NotificationDecision(
                notification_id=notification.notification_id,
                verdict="merge",
                reason=f"{reason}; goes out with {other}",
                until=waiting.until,
                into=other,
            )
    return NotificationDecision(
        notification_id=notification.notification_id, verdict="defer", reason=reason, until=until
    )


def _decision(notification: NotificationGenerated, verdict: str, reason: str) -> NotificationDecision:
    return NotificationDecision.model_validate(
        {"notification_id": notification.notification_id, "verdict": verdict, "reason": reason}
    )


def _is_repeated(notification: NotificationGenerated, about: str, message: str, ago: timedelta) -> bool:
    if notification.about and notification.about == about:
        return ago < _SAME_ABOUT_FOR
    if notification.about.endswith(_ASKED_FOR) or notification.agent == _OF_RUNS:
        return False
    return ago < _SAME_WORDS_FOR and _same_words(notification.message, message)


def _same_words(one: str, other: str) -> bool:
    if numbers_in(one) != numbers_in(other):
        return False
    ours, theirs = set(terms(one)), set(terms(other))
    return bool(ours) and len(ours & theirs) / len(ours | theirs) >= _SAME_WORDS


def _subjects(notification: NotificationGenerated) -> set[str]:
    """Subjects of a notification: a task's end settles its reminders, but not the news of that end."""
    subject, _, rest = notification.about.partition(" ")
    return {notification.about, subject} if rest.endswith(_REMINDS) else {notification.about}


class ModelDecision(BaseModel):
    """A model's decision on one notification."""

    model_config = ConfigDict(extra="forbid")
    decision: Literal["deliver", "defer", "ignore"]
    defer_minutes: int | None = Field(ge=0, le=24 * 60)
    reason: str = Field(max_length=300)
    message: str = Field(max_length=_LONGEST_CHARS)


async def decide_by_model(
    notification: NotificationGenerated, talk: Sequence[DialogueMessage], model: LanguageModel, now: datetime
) -> tuple[NotificationDecision | None, str]:
    """A decision other than to deliver, if the model has one that it may take; the words to deliver it in."""
    guide = shipped_guide("context", language_of(notification.message))
    matter = f"{notification.message}\n{notification.context}\nurgency: {notification.urgency}"
    materials = [
        Material(notification.notification_id, "notification", matter),
        Material("talk", "talk", _transcript(talk) or "nothing has been said"),
    ]
    asked = build_prompt("notification", "write", guide.system, "Decide as JSON.", materials)
    judgement = await try_complete_as(model, asked, ModelDecision, guide.model)
    if judgement is None:
        return None, notification.message
    message = judgement.message if _is_faithful(judgement.message, notification) else notification.message
    return _allowed(judgement, notification, now), message


def _allowed(
    judgement: ModelDecision, notification: NotificationGenerated, now: datetime
) -> NotificationDecision | None:
    """The model's decision within bounds: urgent is delivered, only low is ignored, nothing deferred past expiry."""
    reason = f"model: {judgement.reason}"
    if judgement.decision == "ignore" and notification.urgency is Urgency.LOW:
        return NotificationDecision(notification_id=notification.notification_id, verdict="ignore", reason=reason)
    if judgement.decision == "defer" and judgement.defer_minutes and notification.urgency is not Urgency.HIGH:
        until = now + min(timedelta(minutes=judgement.defer_minutes), _MOST_DEFERRED)
        if notification.expires is None or until < notification.expires:
            return NotificationDecision(
                notification_id=notification.notification_id, verdict="defer", reason=reason, until=until
            )
    return None


def _is_faithful(message: str, notification: NotificationGenerated) -> bool:
    """Check that a wording keeps every number of the notification and adds none."""
    given = numbers_in(f"{notification.message} {notification.context}")
    has_numbers = numbers_in(notification.message) <= numbers_in(message) <= given
    return bool(message.strip()) and has_numbers and is_supported(notification.message, message)


def _transcript(talk: Sequence[DialogueMessage]) -> str:
    shown = [each for each in talk if each.kind is not MessageKind.HIDDEN][-_TALK_MESSAGES:]
    return "\n".join(f"{each.role}: {each.content}" for each in shown)
