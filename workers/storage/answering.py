"""Every answer of storage: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from mindbus.bus.failures import TemporaryFailure
from mindbus.bus.handling import Handling
from storage_service.acl import Asker
from storage_service.registry import PinLost
from workers.refusing import refusing

_SOON = timedelta(seconds=1)


@contextmanager
def answering(handling: Handling, artifact_id: str | None = None) -> Iterator[Asker]:
    """Who asks; every no of storage is written down, then put into the bus's words."""
    asker = Asker(handling.requester, handling.trace_id)
    try:
        with refusing("storage", handling, artifact_id=artifact_id):
            yield asker
    except PinLost as lost:
        raise TemporaryFailure(str(lost), _SOON) from lost
    except OSError as trouble:
        raise TemporaryFailure(f"{type(trouble).__name__}: {trouble}") from trouble
