"""Commands and events of the working memory (spec 000 §3.4)."""

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from bus_schema.glm import MAX_PAGE, BatchReport, KemBatch, KemPage
from bus_schema.identities import Identity, KemId
from bus_schema.kem import Kem, KemDraft, KemNotice
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Command, Event, Nothing, Query, StrictValue, Value

MAX_LEASE_MS = 60 * 60 * 1000
MAX_WAIT_MS = 10 * 60 * 1000
_COUNTABLE = 2**53

SubscriptionId = Annotated[str, StringConstraints(pattern=r"^sub_[A-Za-z0-9_-]{1,64}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,127}$")]
LockToken = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
OperationId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]
LeaseMs = Annotated[int, Field(ge=100, le=MAX_LEASE_MS)]


class PublishKem(Command[Kem], domain="swm", action="publish_kem"):
    """Share a unit with all agents at once; it is also stored in the global memory if it is to be kept."""

    kem: KemDraft
    persist_to_glm_if_new_or_updated: bool = False


class PublishKems(KemBatch, Command[BatchReport], domain="swm", action="publish_kems"):
    """Share many units independently of one another; `ref` is an artifact with one draft per line."""

    persist_to_glm_if_new_or_updated: bool = False


class DropKem(Command[Nothing], domain="swm", action="drop_kem"):
    """Delete a unit from working memory, with whatever of it waits to be stored; global memory keeps what it has."""

    kem_id: KemId


class QuerySwm(Query[KemPage], domain="swm", action="query"):
    """Find units in the working memory (spec 000 §7.2.1); similarity search belongs to the global memory."""

    query: KemQuery
    cursor: str | None = Field(default=None, max_length=512)
    page_size: int = Field(default=50, ge=1, le=MAX_PAGE)

    @model_validator(mode="after")
    def _asks_for_no_nearness(self) -> Self:
        if self.query.is_ranked:
            raise ValueError("text_query, embedding_query are for the global memory: glm.retrieve_kems")
        return self


class LoadedKems(Value):
    """The units loaded into the working memory."""

    kem_ids: tuple[KemId, ...]


class LoadKemsFromGlm(Command[LoadedKems], domain="swm", action="load_kems_from_glm"):
    """Load the results of a query from the global memory into the working memory."""

    query: KemQuery
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class SubscriptionTopic(StrictValue):
    """Changes of units that match a filter: `kem_id=…`, `metadata.key=value`, joined by AND, OR, NOT, ( )."""

    type: Literal["KEM_LIFECYCLE_EVENTS"] = "KEM_LIFECYCLE_EVENTS"
    filter_criteria: str = Field(default="", max_length=1000)


class Subscription(Value):
    """Events that match any topic go to this queue, even while nobody consumes it."""

    subscription_id: SubscriptionId
    queue: str


class Subscribe(Command[Subscription], domain="swm", action="subscribe"):
    """Subscribe to changes that the agent may read; without topics, to all of them.

    With a `name`, it is the agent's subscription of that name, which keeps what has not been read yet.
    """

    agent_id: Identity
    topics: tuple[SubscriptionTopic, ...] = Field(default=(), max_length=50)
    name: Name | None = None


class Unsubscribe(Command[Nothing], domain="swm", action="unsubscribe"):
    """End a subscription; what is still in its queue is deleted."""

    subscription_id: SubscriptionId


class Lock(Value):
    """A held lock, until `expires`; `fencing` is higher than that of every earlier holder."""

    token: LockToken
    fencing: int = Field(ge=1)
    expires: AwareDatetime


class AcquireLock(Command[Lock], domain="swm", action="acquire_lock"):
    """Acquire a lock in queue order; a conflict if it is not free within `wait_ms`."""

    name: Name
    lease_ms: LeaseMs = 30_000
    wait_ms: int = Field(default=0, ge=0, le=MAX_WAIT_MS)


class RenewLock(Command[Lock], domain="swm", action="renew_lock"):
    """Extend the lease of a lock; a conflict if it was lost."""

    name: Name
    token: LockToken
    lease_ms: LeaseMs = 30_000


class ReleaseLock(Command[Nothing], domain="swm", action="release_lock"):
    """Release a lock; a conflict if it was lost."""

    name: Name
    token: LockToken


class LockInfo(Value):
    """Holder of a lock, its fencing number, and the number of waiters."""

    name: Name
    holder: Identity | None = None
    fencing: int = Field(default=0, ge=0)
    expires: AwareDatetime | None = None
    waiting: int = Field(default=0, ge=0)


class GetLockInfo(Query[LockInfo], domain="swm", action="get_lock_info"):
    """Read the state of a lock; a free one has no holder."""

    name: Name


class Count(Value):
    """Value of a counter."""

    value: int


class IncrementCounter(Command[Count], domain="swm", action="increment_counter"):
    """Add to a counter, once per operation id."""

    name: Name
    by: int = Field(default=1, ge=-_COUNTABLE, le=_COUNTABLE)
    operation_id: OperationId


class GetCounter(Query[Count], domain="swm", action="get_counter"):
    """Read a counter; an unused one is 0."""

    name: Name


class KemPublished(KemNotice, topic="kem", name="published"):
    """A unit was added to the working memory."""


class KemEvicted(Event, topic="kem", name="evicted"):
    """A unit was evicted from the working memory; the global memory may still have it."""

    kem_id: KemId
