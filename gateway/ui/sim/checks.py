"""What must hold while people are simulated, as sentences with counts."""

from dataclasses import dataclass

from gateway.ui.sim.counts import SimCounting
from gateway.ui.words import Words

_SLOW_S = 5.0


@dataclass(frozen=True)
class Check:
    """A sentence that holds, or does not."""

    says: str
    counted: str
    holds: bool
    target: str = "/timeline"


def checks_of(words: Words, counting: SimCounting, dead: int) -> list[Check]:
    """All of them; one that breaks stops nothing."""
    stored = {message: counting.stored[message] for message in counting.received}
    doubled = sum(times > 1 for times in counting.stored.values()) + sum(n > 1 for n in counting.received.values())
    lost = [message for message in counting.answered if counting.received and not counting.stored.get(message)]
    again = sum(times > 1 for times in counting.fragments.values())
    slowest = counting.p99_s
    return [
        Check(
            words("check.stored"),
            words(
                "check.stored_count",
                sent=len(stored),
                rows=sum(times > 0 for times in stored.values()),
                doubled=doubled,
            ),
            not doubled and not lost,
            "/timeline?topics=dialogue",
        ),
        Check(
            words("check.fragments"),
            words("check.fragments_count", n=len(counting.fragments), doubled=again),
            not again,
            "/timeline?topics=raw",
        ),
        Check(
            words("check.answered"),
            words("check.answered_count", n=len(counting.answered), of=len(counting.received)),
            len(counting.answered) <= len(counting.received),
            "/timeline?topics=dialogue",
        ),
        Check(words("check.dead"), words("check.dead_count", n=dead), not dead, "/fleet"),
        Check(
            words("check.quick", s=words.seconds(_SLOW_S)),
            f"p99 {words.seconds(slowest)}" if slowest is not None else "–",
            slowest is None or slowest <= _SLOW_S,
            "/timeline?topics=dialogue",
        ),
    ]
