"""The principal: whoever asks a service for something."""

from dataclasses import dataclass

from bus_schema.identities import is_operator, owner_of


@dataclass(frozen=True, slots=True)
class Principal:
    """An agent, a person or a service, with the trace it asks within.

    `is_trusted` marks a service that keeps to the same rights itself, such as working memory before global memory.
    """

    identity: str
    trace_id: str | None = None
    is_trusted: bool = False

    @property
    def owner(self) -> str:
        """The identity without its instance: what one instance made or knows is every instance's."""
        return owner_of(self.identity)

    @property
    def is_service(self) -> bool:
        return self.identity.startswith("svc.")

    @property
    def is_operator(self) -> bool:
        """Whether a service or a person asks, who may look after what others keep."""
        return is_operator(self.identity)
