"""Every answer of the global memory: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from bus_schema.replies import Code
from memory.embedding.errors import EmbedderAway, EmbedderFailure
from memory.vectors.index import IndexAway
from mindbus.bus.context import MessageContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.principal import Principal
from workers.refusing import refusing

# It keeps units at hand for others, to whose rights it looks itself.
_TRUSTED = "swm"
_SOON = timedelta(seconds=1)


@contextmanager
def answering(context: MessageContext, kem_id: str | None = None) -> Iterator[Principal]:
    """Who asks; every no of memory is written down, then put into the bus's words."""
    principal = Principal(context.requester, is_trusted=_is_trusted(context))
    try:
        with refusing("glm", context, kem_id=kem_id):
            yield principal
    except IndexAway as away:
        raise TemporaryFailure(str(away), _SOON) from away
    except EmbedderAway as away:
        raise TemporaryFailure(str(away)) from away
    except EmbedderFailure as failure:
        raise Rejected(Code.UNAVAILABLE, str(failure)) from failure


def _is_trusted(context: MessageContext) -> bool:
    """The working memory itself, not whoever acts in its name."""
    envelope = context.envelope
    return envelope.mbrequester == f"svc.{_TRUSTED}" and envelope.source.startswith(f"/mb/{_TRUSTED}/")
