"""Every answer of the global memory: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from bus_schema.replies import Code
from memory.asker import Asker
from memory.embedding.failures import EmbedderAway, EmbedderFailure
from memory.vectors.index import IndexAway
from mindbus.bus.failures import Refused, TemporaryFailure
from mindbus.bus.handling import Handling
from workers.refusing import refusing

# It keeps units at hand for others, to whose rights it looks itself.
_TRUSTED = "swm"
_SOON = timedelta(seconds=1)


@contextmanager
def answering(handling: Handling, kem_id: str | None = None) -> Iterator[Asker]:
    """Who asks; every no of memory is written down, then put into the bus's words."""
    asker = Asker(handling.requester, is_trusted=_is_trusted(handling))
    try:
        with refusing("glm", handling, kem_id=kem_id):
            yield asker
    except IndexAway as away:
        raise TemporaryFailure(str(away), _SOON) from away
    except EmbedderAway as away:
        raise TemporaryFailure(str(away)) from away
    except EmbedderFailure as failure:
        raise Refused(Code.UNAVAILABLE, str(failure)) from failure


def _is_trusted(handling: Handling) -> bool:
    """The working memory itself, not whoever acts in its name."""
    envelope = handling.envelope
    return envelope.mbrequester == f"svc.{_TRUSTED}" and envelope.source.startswith(f"/mb/{_TRUSTED}/")
