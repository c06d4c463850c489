"""Errors of the embedders."""

from bus_schema.replies import Code
from mindbus.errors import MindBusError, Rejected, TemporaryFailure


class EmbedderFailure(MindBusError):
    """No vectors were made; texts are still found by their words."""

    code = Code.UNAVAILABLE

    def __init__(self, detail: str = "") -> None:
        message = (type(self).__doc__ or "").split("\n")[0]
        super().__init__(message=f"{message} ({detail})" if detail else message)


class EmbedderAway(EmbedderFailure, TemporaryFailure):
    """The embedder does not answer, or asks for patience; try again later."""


class EmbedderRefused(EmbedderFailure, Rejected):
    """The embedder refused for good; check the model's name, its number of dimensions, the key."""


class EmbedderMissing(EmbedderFailure, Rejected):
    """This model needs more than is installed: pip install 'mindbus[embed]', or set MINDBUS_EMBEDDING_BASE_URL."""
