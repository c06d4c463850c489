"""Why there are no vectors."""


class EmbedderFailure(Exception):
    """No vectors were made; what is said in words is found all the same."""

    def __init__(self, detail: str = "") -> None:
        message = (type(self).__doc__ or "").split("\n")[0]
        super().__init__(f"{message} ({detail})" if detail else message)


class EmbedderAway(EmbedderFailure):
    """The embedder does not answer, or asks for patience; try again later."""


class EmbedderRefused(EmbedderFailure):
    """The embedder refused for good; check the model's name, its number of dimensions, the key."""


class EmbedderMissing(EmbedderFailure):
    """This model needs more than is installed: pip install 'mindbus[embed]', or set MINDBUS_EMBEDDING_BASE_URL."""
