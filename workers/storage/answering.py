"""Every answer of storage: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from mindbus.bus.failures import Refused, TemporaryFailure
from mindbus.bus.handling import Handling
from mindbus.logs import logger
from mindbus.refusal import Refusal
from storage_service.acl import Asker
from storage_service.registry import PinLost

_SOON = timedelta(seconds=1)


@contextmanager
def answering(handling: Handling, artifact_id: str | None = None) -> Iterator[Asker]:
    """Who asks; every no of storage is written down, then put into the bus's words."""
    asker = Asker(handling.requester, handling.trace_id)
    try:
        yield asker
    except Refusal as no:
        logger().warning(
            "storage refused",
            type=handling.envelope.type,
            message_id=handling.message_id,
            requester=asker.identity,
            trace_id=asker.trace_id,
            artifact_id=artifact_id,
            refusal=type(no).__name__,
            is_denied=no.is_denied,
            details=no.details,
        )
        raise Refused(no.code, str(no), no.details) from no
    except PinLost as lost:
        raise TemporaryFailure(str(lost), _SOON) from lost
    except OSError as trouble:
        raise TemporaryFailure(f"{type(trouble).__name__}: {trouble}") from trouble
