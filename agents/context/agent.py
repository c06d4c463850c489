"""Stands between the agents that have news and the users who may not want all of it at once."""

from collections.abc import Iterable, Sequence

from agents.context.decisions import DecisionContext, decide_by_model, decide_by_rules
from agents.context.state import Delivery, NotificationDecision, NotificationState
from agents.models.language_model import LanguageModel
from bus_schema.dialogue import DialogueMessage
from bus_schema.notification import NotificationGenerated
from language.words import Language, language_of

_MOST_MERGED = 5
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
