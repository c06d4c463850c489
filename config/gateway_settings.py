"""Settings of the HTTP gateway: where it listens, who signs in and how, TLS, limits."""

from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from mindbus.settings import Settings


class GatewaySettings(Settings):
    """All that an operator can set of the gateway."""

    gateway_host: str = Field(
        default="127.0.0.1", min_length=1, description="Address that the HTTP gateway listens on."
    )
    gateway_access: Literal["token", "open"] = Field(
        default="token",
        description="token: the HTTP gateway requires one; open: on a loopback address it lets in everybody who can "
        "use this machine.",
    )
    gateway_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port of the HTTP gateway; default: 8040, or a free one if it is taken.",
    )
    gateway_public_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s?#]+$",
        description="URL at which other machines reach the HTTP gateway, such as https://mindbus.example.org; file "
        "addresses that storage signs point there. Default: the address it listens on.",
    )
    gateway_tenants: str = Field(
        default="",
        description="Tenants that the HTTP gateway serves besides those with a folder in its data folder, separated "
        "by commas.",
    )
    metrics_token: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="Token for Prometheus: it opens the gateway's /metrics and nothing else; default: operators only.",
    )
    gateway_token: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="Token that the HTTP gateway asks for; default: one generated at the first start and kept in the "
        "data folder.",
    )
    gateway_max_body_bytes: int = Field(
        default=512 * 1024, ge=1024, description="Largest body of a request to the HTTP gateway."
    )
    gateway_max_streams: int = Field(
        default=200, ge=1, description="How many streams of events the HTTP gateway keeps open at once."
    )

    gateway_tls_cert: Path | None = Field(
        default=None, description="Certificate chain (PEM) for TLS on the HTTP gateway; default: plain HTTP."
    )
    gateway_tls_key_file: Path | None = Field(
        default=None, description="Private key of that certificate; default: it is in the same file."
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="The https:// issuer URL of an OpenID provider for sign-in to the web app, besides tokens.",
    )
    oidc_client_id: str | None = Field(default=None, description="Id by which the provider knows the gateway.")
    oidc_client_secret: str | None = Field(
        default=None, repr=False, description="Secret of that client; default: a public client, which has none."
    )
    oidc_scope: str = Field(default="openid profile email", description="Scopes requested from the provider.")
    oidc_claim: str = Field(
        default="preferred_username",
        description="Claim that holds the account name; email counts only if the provider has verified it.",
    )
    gateway_trusted_proxies: str = Field(
        default="",
        description="Comma-separated addresses or networks of proxies whose X-Forwarded-For and -Proto are trusted.",
    )
    gateway_requests_per_minute: int = Field(
        default=1200, ge=0, description="How many HTTP requests an account may make per minute; 0: no limit."
    )
    gateway_unanswered_messages: int = Field(
        default=32,
        ge=0,
        description="How many of one person's messages to models may wait at the gateway for answers, which come one "
        "after the other; further messages are refused. 0: no limit.",
    )
    a2a_card: Literal["public", "private"] = Field(
        default="public",
        description="public: everybody may read the agent card, which says that there is an assistant here and which "
        "cards are public; private: only with a token.",
    )
    gateway_webhook_hosts: str = Field(
        default="",
        description="Comma-separated hosts, addresses or networks that webhooks may reach even if they are "
        "not public or not encrypted; all others need a public address and https.",
    )
    user_tokens_per_day: int = Field(
        default=0,
        ge=0,
        description="How many model tokens may be used for a person per day (UTC): for their messages, by agents that "
        "read along, by sub-agents and by runs, which then pause. Operators are exempt; 0: no limit.",
    )

    @field_validator("oidc_issuer")
    @classmethod
    def _is_trustworthy(cls, issuer: str | None) -> str | None:
        parts = urlsplit(issuer or "https:")
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1"):
            raise ValueError("is not an https:// URL: anybody in between could sign in as anybody")
        return issuer

    @model_validator(mode="after")
    def _knows_its_client(self) -> Self:
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("MINDBUS_OIDC_ISSUER needs MINDBUS_OIDC_CLIENT_ID")
        return self
