"""Selection of the language model."""

from datetime import timedelta

from agents.models.errors import ModelHalfConfigured
from agents.models.language_model import LanguageModel
from agents.models.offline.model import OfflineModel
from config.settings import FleetSettings

RETRIES = 4


def open_model(
    base_url: str | None,
    model: str | None,
    api_key: str | None = None,
    timeout: timedelta = timedelta(minutes=5),
    *,
    retries: int = RETRIES,
) -> LanguageModel:
    """An endpoint where one is configured, else the offline model; a local endpoint may need no key."""
    if not base_url and not model and not api_key:
        return OfflineModel()
    if not base_url:
        raise ModelHalfConfigured("MINDBUS_LLM_BASE_URL")
    if not model:
        raise ModelHalfConfigured("MINDBUS_LLM_MODEL")
    # The client takes seconds to import, which nobody should wait for who works offline.
    from agents.models.openai_compatible import OpenAICompatible

    return OpenAICompatible(base_url=base_url, model=model, api_key=api_key, timeout=timeout, retries=retries)


def model_of(settings: FleetSettings, *, retries: int = RETRIES) -> LanguageModel:
    """The model of the settings, the offline model by default. Raises ModelHalfConfigured.

    `retries` of the client by itself, for those that have no budget of their own.
    """
    timeout = timedelta(seconds=settings.llm_timeout_s)
    return open_model(settings.llm_base_url, settings.llm_model, settings.llm_api_key, timeout, retries=retries)
