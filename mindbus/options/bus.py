"""Settings of messages on their way."""

from pydantic import BaseModel, Field


class BusSettings(BaseModel):
    """What may be on its way, how often it is tried."""

    max_body_bytes: int = Field(default=64 * 1024, ge=1024, le=256 * 1024, description="Largest AMQP body.")
    buffer_max_bytes: int = Field(
        default=4 * 1024**3, ge=0, description="How many bytes may wait for storage on one machine, per participant."
    )
    buffer_max_artifacts: int = Field(
        default=1000, ge=1, description="How many artifacts may wait for storage on one machine, per participant."
    )
    retry_rungs: str = Field(default="1s,10s,1m,10m", description="Delays of the retry ladder, in order.")
    publish_timeout_s: float = Field(default=10, gt=0, description="How long a confirm may take before it is retried.")
    request_timeout_s: float = Field(default=30, gt=0, description="Deadline of a request that names none.")
    heartbeat_s: float = Field(default=5, gt=0, description="Interval of worker heartbeats, in seconds.")
    drain_s: float = Field(default=20, gt=0, description="How long a stopping worker finishes what it has begun.")
