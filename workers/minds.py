"""The language model that a worker thinks with."""

from datetime import timedelta

from agents.models.choice import open_model
from agents.models.language_model import LanguageModel
from mindbus.settings import Settings


def model_of(settings: Settings) -> LanguageModel:
    """As the settings have it; without any, the offline model. Raises ModelHalfConfigured."""
    timeout = timedelta(seconds=settings.llm_timeout_s)
    return open_model(settings.llm_base_url, settings.llm_model, settings.llm_api_key, timeout)
