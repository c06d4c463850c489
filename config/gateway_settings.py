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
        description="token: the HTTP gateway asks for one; open: on a loopback address it lets in everybody who can "
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
        description="URL under which other machines reach the HTTP gateway, as https://mindbus.example.org; storage "
        "signs addresses of files there. Default: where it listens.",
    )
    gateway_tenants: str = Field(
        default="",
        description="Tenants that the HTTP gateway serves besides those that have a folder in its data folder, by "
        "commas.",
    )
    metrics_token: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="Token of Prometheus: it opens the gateway's /metrics and nothing else; default: operators alone.",
    )
    gateway_token: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="What the HTTP gateway asks for; default: a token that is made at the first start, kept in the "
        "data folder.",
    )
    gateway_max_body_bytes: int = Field(
        default=512 * 1024, ge=1024, description="Largest body of a request to the HTTP gateway."
    )
    gateway_max_streams: int = Field(
        default=200, ge=1, description="How many streams of events the HTTP gateway keeps open at once."
    )

    gateway_tls_cert: Path | None = Field(
        default=None, description="Certificate chain (PEM) with which the HTTP gateway speaks TLS; default: plain HTTP."
    )
    gateway_tls_key_file: Path | None = Field(
        default=None, description="Private key of that certificate; default: it is in the same file."
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="OpenID provider by which people sign in to the web app, besides tokens: its https:// issuer URL.",
    )
    oidc_client_id: str | None = Field(default=None, description="Id by which the provider knows the gateway.")
    oidc_client_secret: str | None = Field(
        default=None, repr=False, description="Secret of that client; default: a public client, which has none."
    )
    oidc_scope: str = Field(default="openid profile email", description="What the provider is asked for.")
    oidc_claim: str = Field(
        default="preferred_username",
        description="Claim that has the name of the account; email counts if the provider has verified it.",
    )
    gateway_trusted_proxies: str = Field(
        default="",
        description="Addresses or networks, by commas, of proxies whose X-Forwarded-For and -Proto are believed.",
    )
    gateway_requests_per_minute: int = Field(
        default=1200, ge=0, description="How many HTTP requests an account may make in a minute; 0: any number."
    )
    gateway_unanswered_messages: int = Field(
        default=32,
        ge=0,
        description="How many messages to models of one person may wait at the gateway for their answers, which come "
        "one after the other; further ones are refused. 0: any number.",
    )
    a2a_card: Literal["public", "private"] = Field(
        default="public",
        description="public: everybody may read the agent card, which says that there is an assistant here, and which "
        "cards are public; private: only with a token.",
    )
    gateway_webhook_hosts: str = Field(
        default="",
        description="Hosts, addresses or networks, by commas, to which webhooks may go though they are not public, or "
        "unencrypted; all others need a public address and https.",
    )
    user_tokens_per_day: int = Field(
        default=0,
        ge=0,
        description="How many tokens of models may be used for a person in a day (UTC): for their messages, by agents "
        "that read along, sub-agents, and runs, which pause then; for operators, and in all where it is 0, any number.",
    )

    @field_validator("oidc_issuer")
    @classmethod
    def _is_trustworthy(cls, issuer: str | None) -> str | None:
        parts = urlsplit(issuer or "https:")
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1"):
            raise ValueError("is no https:// URL: whoever sits in between could sign in as anybody")
        return issuer

    @model_validator(mode="after")
    def _knows_its_client(self) -> Self:
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("MINDBUS_OIDC_ISSUER needs MINDBUS_OIDC_CLIENT_ID")
        return self
