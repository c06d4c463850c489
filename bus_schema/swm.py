"""What is said to the working memory, plus what it tells (spec 000 §3.4)."""

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bus_schema.artifacts import ArtifactRef
from bus_schema.glm import MAX_BATCH, MAX_PAGE, BatchReport, KemPage
from bus_schema.identities import Identity
from bus_schema.kem import Kem, KemDraft, KemNotice
from bus_schema.kem_query import KemQuery
from bus_schema.links import KemId
from bus_schema.messages import Command, Event, Nothing, Query

MAX_LEASE_MS = 60 * 60 * 1000
MAX_WAIT_MS = 10 * 60 * 1000
_COUNTABLE = 2**53

SubscriptionId = Annotated[str, StringConstraints(pattern=r"^sub_[A-Za-z0-9_-]{1,64}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,127}$")]
LockToken = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
OperationId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]
LeaseMs = Annotated[int, Field(ge=100, le=MAX_LEASE_MS)]


class PublishKem(Command[Kem], domain="swm", action="publish_kem"):
    """Share a unit with all agents at once, keep it in the global memory later, if it is to be kept."""

    kem: KemDraft
    persist_to_glm_if_new_or_updated: bool = False


class PublishKems(Command[BatchReport], domain="swm", action="publish_kems"):
    """Share many units, each for itself; `ref` is to an artifact with a draft a line."""

    kems: tuple[KemDraft, ...] = Field(default=(), max_length=MAX_BATCH)
    ref: ArtifactRef | None = None
    persist_to_glm_if_new_or_updated: bool = False

    @model_validator(mode="after")
    def _has_units(self) -> Self:
        if bool(self.kems) == (self.ref is not None):
            raise ValueError("a batch has either units or a ref to them")
        return self


class QuerySwm(Query[KemPage], domain="swm", action="query"):
    """Find units among those at hand (spec 000 §7.2.1); nearness of meaning or words is for the global memory."""

    query: KemQuery
    cursor: str | None = Field(default=None, max_length=512)
    page_size: int = Field(default=50, ge=1, le=MAX_PAGE)

    @model_validator(mode="after")
    def _asks_for_no_nearness(self) -> Self:
        if self.query.is_ranked:
            raise ValueError("text_query, embedding_query are for the global memory: glm.retrieve_kems")
        return self


class LoadedKems(BaseModel):
    """These units are at hand now."""

    model_config = ConfigDict(frozen=True)
    kem_ids: tuple[KemId, ...]


class LoadKemsFromGlm(Command[LoadedKems], domain="swm", action="load_kems_from_glm"):
    """Have what the question finds in the global memory at hand."""

    query: KemQuery
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class SubscriptionTopic(BaseModel):
    """Changes of the units that a filter describes: `kem_id=…`, `metadata.key=value`, joined by AND, OR, ( )."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: Literal["KEM_LIFECYCLE_EVENTS"] = "KEM_LIFECYCLE_EVENTS"
    filter_criteria: str = Field(default="", max_length=1000)


class Subscription(BaseModel):
    """What matches any topic comes to this queue, even while nobody reads from it."""

    model_config = ConfigDict(frozen=True)
    subscription_id: SubscriptionId
    queue: str


class Subscribe(Command[Subscription], domain="swm", action="subscribe"):
    """Hear of changes that the agent may read about; without topics, of all of them.

    With a `name` it is the agent's subscription of that name, which keeps what it has not read yet.
    """

    agent_id: Identity
    topics: tuple[SubscriptionTopic, ...] = Field(default=(), max_length=50)
    name: Name | None = None


class Unsubscribe(Command[Nothing], domain="swm", action="unsubscribe"):
    """Hear no more; what is still in the queue is gone."""

    subscription_id: SubscriptionId


class Lock(BaseModel):
    """The lock is held until `expires`; `fencing` is higher than that of all who held it before."""

    model_config = ConfigDict(frozen=True)
    token: LockToken
    fencing: int = Field(ge=1)
    expires: AwareDatetime


class AcquireLock(Command[Lock], domain="swm", action="acquire_lock"):
    """Take a lock, in turn; it is a conflict if it is not free within `wait_ms`."""

    name: Name
    lease_ms: LeaseMs = 30_000
    wait_ms: int = Field(default=0, ge=0, le=MAX_WAIT_MS)


class RenewLock(Command[Lock], domain="swm", action="renew_lock"):
    """Hold a lock for another lease; it is a conflict if it has been lost."""

    name: Name
    token: LockToken
    lease_ms: LeaseMs = 30_000


class ReleaseLock(Command[Nothing], domain="swm", action="release_lock"):
    """Let go of a lock; it is a conflict if it has been lost."""

    name: Name
    token: LockToken


class LockInfo(BaseModel):
    """Who holds a lock, since which turn, how many wait for it."""

    model_config = ConfigDict(frozen=True)
    name: Name
    holder: Identity | None = None
    fencing: int = Field(default=0, ge=0)
    expires: AwareDatetime | None = None
    waiting: int = Field(default=0, ge=0)


class GetLockInfo(Query[LockInfo], domain="swm", action="get_lock_info"):
    """Look at a lock; one that nobody holds has no holder."""

    name: Name


class Count(BaseModel):
    """What a counter stands at."""

    model_config = ConfigDict(frozen=True)
    value: int


class IncrementCounter(Command[Count], domain="swm", action="increment_counter"):
    """Add to a counter, once for each operation id."""

    name: Name
    by: int = Field(default=1, ge=-_COUNTABLE, le=_COUNTABLE)
    operation_id: OperationId


class GetCounter(Query[Count], domain="swm", action="get_counter"):
    """Read a counter; one that nobody has ever added to stands at 0."""

    name: Name


class KemPublished(KemNotice, topic="kem", name="published"):
    """A unit has come into the working memory."""


class KemEvicted(Event, topic="kem", name="evicted"):
    """A unit has had to leave the working memory; the global memory may still have it."""

    kem_id: KemId
