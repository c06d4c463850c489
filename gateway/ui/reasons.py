"""Reasons that agents give for their decisions, in the language of the viewer; others are shown as given."""

import re
from collections.abc import Callable
from typing import Final

from bus_schema.dialogue import DialogueFragment
from bus_schema.envelope import Envelope
from gateway.ui.i18n import Localizer

# As `agents.context.decisions` writes them: a pattern and the message whose place it takes.
_NOTIFICATIONS: Final = (
    (re.compile(r"quiet hours until (?P<time>\d\d:\d\d)"), "reason.quiet"),
    (re.compile(r"waits for a pause in the talk"), "reason.pause"),
    (re.compile(r"gathers with what comes close after another"), "reason.gathers"),
    (re.compile(r"more than (?P<n>\d+) an hour"), "reason.rate"),
    (re.compile(r"; goes out with \S+"), "reason.merged"),
    (re.compile(r", by then it is stale"), "reason.stale_by_then"),
    (re.compile(r"stale: expired at (?P<time>.+)"), "reason.stale"),
    (re.compile(r"settled meanwhile: .*"), "reason.settled"),
    (re.compile(r"the same as \S+, told at (?P<time>[\d :-]+)"), "reason.told"),
    (re.compile(r"the same as \S+, which waits until (?P<time>[\d :-]+)"), "reason.waits"),
)


def decision_reason(i18n: Localizer, reason: str) -> str:
    """The reason of the context agent for not delivering at once."""

    def message(key: str) -> Callable[[re.Match[str]], str]:
        return lambda match: i18n(key, **match.groupdict())

    for pattern, key in _NOTIFICATIONS:
        reason = pattern.sub(message(key), reason)
    return reason


def event_reason(i18n: Localizer, envelope: Envelope, reason: str) -> str:
    """The reason that an event carries."""
    if envelope.type == DialogueFragment.wire.type:
        return i18n.named("reason.fragment", reason)
    return decision_reason(i18n, reason) if envelope.type.startswith("mb.evt.notification.") else reason
