"""Settings of the library: broker, files, timeouts, logs. `MINDBUS_*` is read here, once, nowhere else."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SecretsSettingsSource, SettingsConfigDict

from bus_schema.delegation import client_identity
from mindbus.broker_url import NotAnAddress, nodes_of
from mindbus.redaction import add_secrets, without_secrets
from mindbus.tenants import TENANT_NAME, name_of, of_tenant

_KNOWN = {
    "log_level": ("DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL"),
    "log_format": ("console", "json"),
}
_RUNG = "[1-9][0-9]*(ms|s|m|h)"
_RUNGS = rf" *{_RUNG}( *, *{_RUNG})*,? *"
_SCHEMES = {
    # `memory` is the bus of a single process, for tests.
    "amqp_url": (("amqp", "amqps", "memory"), "amqp://HOST:5672/"),
    "management_url": (("http", "https"), "http://HOST:15672"),
}
_MOST_PARTITIONS = 64


class NotPartitions(ValueError):
    """Write partitions as service=number, up to 64 each, separated by commas, such as dialogue=4."""


def parse_partitions(text: str) -> Mapping[str, int]:
    """Numbers of partitions by service. Raises NotPartitions."""
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        service, _, number = map(str.strip, part.partition("="))
        if not (service and number.isdecimal() and 1 <= int(number) <= _MOST_PARTITIONS):
            raise NotPartitions(f"{NotPartitions.__doc__} Got: {part}")
        found[service] = int(number)
    return found


class Settings(BaseSettings):
    """All that the bus, the SDK and the command line can be told; a fleet or a worker adds its own in a subclass."""

    model_config = SettingsConfigDict(env_prefix="MINDBUS_", frozen=True, extra="ignore", hide_input_in_errors=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then the files of the folder that it names."""
        files = SecretsSettingsSource(settings_cls, secrets_dir=os.environ.get("MINDBUS_SECRETS_DIR"))
        return init_settings, env_settings, files

    data_dir: Path = Field(default=Path(".data"), description="Folder for all local state.")
    tenant: str | None = Field(
        default=None,
        pattern=TENANT_NAME,
        description="Tenant that this is part of: a fleet with its own virtual host, folder and databases on the "
        "servers that the other settings name; see tenants.",
    )
    secrets_dir: Path | None = Field(
        default=None,
        description="Folder with files named after variables, such as mindbus_amqp_url, that hold their values, the "
        "way containers are given secrets; a variable that is set takes precedence.",
    )
    amqp_url: str | None = Field(
        default=None,
        description="RabbitMQ to use; without it, `up` starts a private node. For a cluster, name several hosts, as in "
        "amqp://USER:PASSWORD@HOST1,HOST2:5673,HOST3/.",
    )
    management_url: str | None = Field(
        default=None,
        description="Management API of that RabbitMQ, with credentials; guessed if it is at the usual address.",
    )
    artifacts_url: str | None = Field(
        default=None,
        description="Where artifacts and claims are stored: file:///folder or s3://bucket/prefix; default: a folder in "
        "the data folder.",
    )
    artifacts_access: Literal["auto", "direct", "presigned"] = Field(
        default="auto",
        description="How bytes get to the file store and back: direct, or presigned, by addresses that storage signs. "
        "auto: presigned if you log in to RabbitMQ with an account and name no store, or use an object store without "
        "credentials; otherwise direct.",
    )
    s3_endpoint_url: str | None = Field(
        default=None, description="Object store to use for s3:// URLs; default: AWS_ENDPOINT_URL, or AWS."
    )
    s3_access_key: str | None = Field(
        default=None, repr=False, description="Access key for that object store; default: from AWS_* or AWS's files."
    )
    s3_secret_key: str | None = Field(default=None, repr=False, description="The secret of that access key.")
    s3_region: str | None = Field(default=None, description="Region of the bucket; default: AWS_REGION.")
    s3_part_bytes: int = Field(
        default=16 * 1024**2,
        ge=5 * 1024**2,
        le=1024**3,
        description="Larger files are sent to an object store in parts of this size.",
    )
    s3_concurrency: int = Field(default=3, ge=1, le=32, description="How many parts of one file are sent at once.")
    database_url: str | None = Field(
        default=None,
        description="SQLAlchemy URL of the database that all services share, a schema each; default: SQLite files.",
    )
    max_body_bytes: int = Field(default=64 * 1024, ge=1024, le=256 * 1024, description="Largest AMQP body.")
    buffer_max_bytes: int = Field(
        default=4 * 1024**3, ge=0, description="How many bytes may wait for storage on one machine, per participant."
    )
    buffer_max_artifacts: int = Field(
        default=1000, ge=1, description="How many artifacts may wait for storage on one machine, per participant."
    )
    partitions: str = Field(
        default="",
        description="Services whose commands are spread over several queues by user, such as dialogue=4; must be the "
        "same for all programs on a broker. After a change, run: mindbus topology migrate.",
    )
    partition: int | None = Field(
        default=None, ge=0, description="Which of these queues this process takes, from 0; default: all of them."
    )
    queue_nodes: int | None = Field(
        default=None,
        ge=1,
        le=9,
        description="How many cluster nodes keep the work queues, an odd number; default: RabbitMQ's default, three. "
        "After a change, run: mindbus topology migrate.",
    )
    retry_rungs: str = Field(default="1s,10s,1m,10m", description="Delays of the retry ladder, in order.")
    publish_timeout_s: float = Field(default=10, gt=0, description="How long publishing may take, retries included.")
    request_timeout_s: float = Field(default=30, gt=0, description="Deadline for requests that set none.")
    heartbeat_s: float = Field(default=5, gt=0, description="Interval of worker heartbeats, in seconds.")
    watchdog_s: float = Field(
        default=120,
        ge=0,
        description="A worker whose event loop stands still for this many seconds logs the stacks of its threads and "
        "exits, so that its supervisor starts it again; 0: never.",
    )
    drain_s: float = Field(default=20, gt=0, description="How long a stopping worker may take to finish what it began.")
    llm_timeout_s: float = Field(default=120, gt=0, description="How long one model call may take, in seconds.")
    llm_first_token_s: float = Field(
        default=300, gt=0, description="How long a role waits for the first word of an answer, in seconds."
    )
    llm_idle_s: float = Field(default=60, gt=0, description="How long it waits for each further word, in seconds.")
    subagent_timeout_s: float = Field(
        default=120, gt=0, description="How long a sub-agent may take over one task, in seconds."
    )
    operators: str = Field(
        default="local", description="Comma-separated ids of people who may access and maintain everybody's data."
    )
    readers: str = Field(
        default="", description="Comma-separated names of your own workers that may read what the fleet's workers may."
    )
    metrics_port: int | None = Field(default=None, description="Port of the Prometheus endpoint; unset: no endpoint.")
    metrics_host: str = Field(default="127.0.0.1", description="Address that the Prometheus endpoint listens on.")
    metrics_interval_s: float = Field(
        default=15,
        ge=0,
        description="How often a worker process publishes its metrics on the bus, in seconds, for the gateway's "
        "fleet-wide endpoint; 0: never.",
    )
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR.")
    log_format: str = Field(default="console", description="console or json.")

    @model_validator(mode="before")
    @classmethod
    def _are_of_tenant(cls, values: Any) -> Any:
        tenant = values.get("tenant") if isinstance(values, dict) else None
        return of_tenant(values, tenant) if isinstance(tenant, str) and re.match(TENANT_NAME, tenant) else values

    @field_validator("*")
    @classmethod
    def _is_readable_url(cls, value: Any, field: ValidationInfo) -> Any:
        if isinstance(value, str) and "@" in value and (field.field_name or "").endswith("_url"):
            try:
                _ = [urlsplit(node).port for node in nodes_of(value)]
            except NotAnAddress:
                raise
            except ValueError:
                # Its own words repeat what stands where a port should, such as a part of the password.
                raise ValueError("is not a URL; in a password write / as %2F, # as %23, ? as %3F, @ as %40") from None
        return value

    @field_validator("log_level", "log_format")
    @classmethod
    def _is_one_of(cls, value: str, field: ValidationInfo) -> str:
        known, word = _KNOWN[str(field.field_name)], value.strip()
        found = next((each for each in known if each.casefold() == word.casefold()), None)
        if found is None:
            raise ValueError(f"must be one of {', '.join(known)}")
        return found

    @field_validator("retry_rungs")
    @classmethod
    def _are_rungs(cls, value: str) -> str:
        if not re.fullmatch(_RUNGS, value):
            raise ValueError("must be delays such as 1s,10s,1m: each a number with ms, s, m or h")
        return value

    @field_validator("partitions")
    @classmethod
    def _are_partitions(cls, value: str) -> str:
        parse_partitions(value)
        return value

    @field_validator("amqp_url", "management_url")
    @classmethod
    def _has_scheme_that_is_spoken(cls, value: str | None, field: ValidationInfo) -> str | None:
        schemes, example = _SCHEMES[str(field.field_name)]
        if value is not None and value.partition("://")[0].lower() not in schemes:
            raise ValueError(f"must begin with {schemes[0]}:// or {schemes[1]}://, such as {example}")
        return value

    def model_post_init(self, _context: object) -> None:
        """From now on the secrets of these settings are masked in logs and errors."""
        add_secrets(self.secrets())

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, without_secrets(value) if isinstance(value, str) else value

    def secrets(self) -> Iterator[str]:
        """Values of secret settings, which have `repr=False`; passwords in URLs, as they stand there and decoded."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if not isinstance(value, str):
                continue
            if not field.repr:
                yield value
            password = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
            yield from (password, unquote(password))

    @property
    def own_identity(self) -> str | None:
        """Identity of the account that MINDBUS_AMQP_URL logs in with; None where it may be anybody, or is a worker."""
        url = self.amqp_url or ""
        return (
            client_identity(name_of(unquote(urlsplit(url).username or ""))) if url.lower().startswith("amqp") else None
        )

    @property
    def files_url(self) -> str:
        return self.artifacts_url or (self.data_dir / "artifacts").absolute().as_uri()

    @property
    def run_dir(self) -> Path:
        """The folder of what processes of this machine look up: health, the private broker's address."""
        return self.data_dir / "run"

    def database_of(self, service: str) -> str:
        """The SQLAlchemy URL of one service's own database."""
        return self.database_url or f"sqlite+aiosqlite:///{(self.data_dir / f'{service}.db').absolute()}"

    def environment(self) -> dict[str, str]:
        """This process's environment with these settings in it, for a process that is started from here."""
        own = {f"MINDBUS_{field.upper()}" for field in type(self).model_fields}
        inherited = {name: value for name, value in os.environ.items() if name not in own}
        values = self.model_dump(mode="json", exclude_none=True) | {"data_dir": str(self.data_dir.absolute())}
        return inherited | {f"MINDBUS_{field.upper()}": str(value) for field, value in values.items()}


SettingsT = TypeVar("SettingsT", bound=Settings)
