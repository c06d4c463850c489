"""Settings of the HTTP gateway."""

from pydantic import BaseModel, Field


class EdgeSettings(BaseModel):
    """The HTTP gateway."""

    gateway_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that the HTTP gateway listens on; on any but a loopback one it asks for a token.",
    )
    gateway_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port of the HTTP gateway; default: 8040, or a free one if it is taken.",
    )
    gateway_token: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="What the HTTP gateway asks for; default: nothing on a loopback address, elsewhere a token that is "
        "made at the first start, then kept in the data folder.",
    )
    gateway_max_body_bytes: int = Field(
        default=512 * 1024, ge=1024, description="Largest body of a request to the HTTP gateway."
    )
    gateway_max_streams: int = Field(
        default=200, ge=1, description="How many streams of events the HTTP gateway keeps open at once."
    )
