"""Who asks memory."""

from dataclasses import dataclass

from bus_schema.identities import owner_of


@dataclass(frozen=True, slots=True)
class Asker:
    """An agent, a person, a service; `is_trusted` where it is a part of memory that keeps to the same rights itself."""

    identity: str
    is_trusted: bool = False

    @property
    def owner(self) -> str:
        """The asker without its instance: what one instance knows, every instance knows."""
        return owner_of(self.identity)
