"""Models by role: of MINDBUS_LLM_<ROLE>_*, then `models.yaml`, then MINDBUS_LLM_*, last the offline model."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from agents.configuration.validation import InvalidFile, read_config_file, read_file
from agents.models.endpoint import EndpointModel
from agents.models.errors import ModelHalfConfigured
from agents.models.language_model import DEFAULTS, LanguageModel, ModelParams
from agents.models.offline.model import OfflineModel
from agents.models.recorded import CallRecorder, RecordedModel
from config.settings import FleetSettings
from config.shipped import config_folder

RETRIES = 4
# Besides the creative roles and the sub-agents; the dialogue comes first.
ROLES = ("dialogue", "task_manager", "context_manager", "mood_watcher", "context", "packer")
# In place of a model's name: no endpoint for this role.
OFFLINE = "offline"
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,60}$")]


class EndpointFile(BaseModel):
    """An endpoint; `api_key_from` names the environment variable with its key."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    base_url: str = Field(min_length=1, max_length=500)
    api_key_from: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    concurrency: int | None = Field(default=None, ge=1, le=1000)


class ModelChoice(BaseModel):
    """A model at one of the endpoints; what is left out is what roles without a line of their own have."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
    endpoint: Name | None = None
    model: str | None = Field(default=None, min_length=1, max_length=200)
    params: ModelParams = DEFAULTS


class TokenPrice(BaseModel):
    """Price of a million tokens, in whatever currency the table has."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    input: float = Field(ge=0)
    output: float = Field(ge=0)


class ModelsFile(BaseModel):
    """Endpoints by name, models by role, prices by model."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    endpoints: dict[Name, EndpointFile] = {}
    default: ModelChoice = ModelChoice()
    roles: dict[Name, ModelChoice] = {}
    prices: dict[str, TokenPrice] = {}

    @model_validator(mode="after")
    def _knows_its_endpoints(self) -> Self:
        for choice in (self.default, *self.roles.values()):
            if choice.endpoint is not None and choice.endpoint not in self.endpoints:
                raise ValueError(f"there is no endpoint {choice.endpoint!r}; add it to `endpoints`")
        return self


class InvalidModels(InvalidFile):
    """The models cannot be opened; each line says where, what is wrong, what to do."""


def parse_models(text: bytes, source: str) -> ModelsFile:
    """Read `models.yaml`; errors name it `source`. Raises InvalidModels with every problem."""
    return read_file(text, source, ModelsFile, InvalidModels)


class ModelSpec(BaseModel):
    """A model at an endpoint, with the calls that the endpoint serves at once."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())
    base_url: str
    model: str
    api_key: str | None = Field(default=None, repr=False)
    concurrency: int = 1
    timeout: timedelta = timedelta(minutes=5)
    params: ModelParams = DEFAULTS


class _RoleVariables(BaseSettings):
    """Variables of one role."""

    model_config = SettingsConfigDict(extra="ignore", protected_namespaces=())
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None


@dataclass(frozen=True)
class _Layer:
    """One place that may configure a role; more specific places come first."""

    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    concurrency: int | None = None


def spec_of(settings: FleetSettings, role: str) -> ModelSpec | None:
    """The model of a role, None for the offline model. Raises ModelHalfConfigured, InvalidModels.

    A key and a concurrency belong to the endpoint that they are given with: the key is sent to no other one.
    """
    file = _models_file(config_folder())
    own, general = file.roles.get(role, ModelChoice()), file.default
    variables = _RoleVariables(_env_prefix=f"MINDBUS_LLM_{role.upper().replace('-', '_')}_")
    layers = (
        _Layer(variables.base_url, variables.model, variables.api_key),
        _layer(file, own),
        _Layer(settings.llm_base_url, settings.llm_model, settings.llm_api_key),
        _layer(file, general),
    )
    model = next((layer.model for layer in layers if layer.model), None)
    with_endpoint = list(_up_to_endpoint(layers))
    base_url = with_endpoint[-1].base_url
    api_key = next((layer.api_key for layer in with_endpoint if layer.api_key), None)
    if model == OFFLINE or not (base_url or model or api_key):
        return None
    if not base_url or not model:
        raise ModelHalfConfigured("MINDBUS_LLM_MODEL" if base_url else "MINDBUS_LLM_BASE_URL")
    return ModelSpec(
        base_url=base_url.rstrip("/"),
        model=model,
        api_key=api_key,
        concurrency=next((each.concurrency for each in with_endpoint if each.concurrency), settings.llm_concurrency),
        timeout=timedelta(seconds=settings.llm_timeout_s),
        params=general.params.model_copy(update=own.params.model_dump(exclude_none=True)),
    )


def price_of(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """The price by the table of `models.yaml`; None where it does not have the model. Raises InvalidModels."""
    price = _models_file(config_folder()).prices.get(model)
    if price is None:
        return None
    return (price.input * prompt_tokens + price.output * completion_tokens) / 1_000_000


def _layer(file: ModelsFile, choice: ModelChoice) -> _Layer:
    if choice.endpoint is None:
        return _Layer(model=choice.model)
    endpoint = file.endpoints[choice.endpoint]
    key = os.environ.get(endpoint.api_key_from) if endpoint.api_key_from else None
    return _Layer(endpoint.base_url, choice.model, key, endpoint.concurrency)


def _up_to_endpoint(layers: Sequence[_Layer]) -> Iterator[_Layer]:
    """The layers down to the one that names the endpoint; all of them where none does."""
    for layer in layers:
        yield layer
        if layer.base_url:
            return


@cache
def _models_file(_folder: Path | None) -> ModelsFile:
    file = read_config_file("", "models")
    return parse_models(file.content, file.source)


def model_of(
    settings: FleetSettings,
    role: str,
    recorder: CallRecorder | None = None,
    *,
    is_chat: bool = False,
    streams: bool = False,
    retries: int = RETRIES,
) -> LanguageModel:
    """The model of a role, the offline model by default. Raises ModelHalfConfigured, InvalidModels.

    Calls of other models than that are recorded.
    `is_chat` where somebody waits for its words; `streams` where an answer may take as long as it goes on; `retries` of
    the client by itself, for those without a budget.
    """
    spec = spec_of(settings, role)
    if spec is None:
        return OfflineModel()
    # The client takes seconds to import, which nobody should wait for who works offline.
    from agents.models.openai_compatible import OpenAICompatible, StreamLimits

    model = OpenAICompatible(
        base_url=spec.base_url,
        model=spec.model,
        api_key=spec.api_key,
        timeout=spec.timeout,
        retries=retries,
        limits=StreamLimits(settings.llm_first_token_s, settings.llm_idle_s) if streams else None,
    )
    called = RecordedModel(model, recorder) if recorder else model
    return EndpointModel(called, spec.base_url, spec.concurrency, is_chat=is_chat, params=spec.params)
