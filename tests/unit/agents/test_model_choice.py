"""Which model answers is decided by what is configured."""

import pickle
from datetime import timedelta

import pytest

from agents.configuration.model_roles import open_model
from agents.models.errors import AnswerCutOff, ModelHalfConfigured, ModelUnavailable
from agents.models.offline.model import OfflineModel
from agents.models.openai_compatible import OpenAICompatible


@pytest.mark.parametrize("unset", [None, ""])
def test_nothing_configured_means_offline(unset: str | None) -> None:
    assert isinstance(open_model(unset, unset, unset), OfflineModel)


async def test_an_address_with_a_name_means_that_endpoint() -> None:
    model = open_model("http://127.0.0.1:1/v1", "qwen", "key", timedelta(seconds=1))

    assert isinstance(model, OpenAICompatible)
    assert model.name == "qwen"
    await model.aclose()


@pytest.mark.parametrize(
    ("base_url", "model", "api_key", "missing"),
    [
        ("http://127.0.0.1:1/v1", None, None, "MINDBUS_LLM_MODEL"),
        (None, "qwen", None, "MINDBUS_LLM_BASE_URL"),
        (None, None, "key", "MINDBUS_LLM_BASE_URL"),
    ],
)
def test_half_a_configuration_is_an_error_that_names_the_other_half(
    base_url: str | None, model: str | None, api_key: str | None, missing: str
) -> None:
    with pytest.raises(ModelHalfConfigured, match=rf"missing: {missing}"):
        open_model(base_url, model, api_key)


def test_a_failure_says_what_to_do_and_survives_a_checkpoint() -> None:
    failure = pickle.loads(pickle.dumps(ModelUnavailable("HTTP 503", delay=timedelta(seconds=9))))

    assert str(failure).endswith("try again later. (HTTP 503)")
    assert failure.delay == timedelta(seconds=9)
    assert "raise max_tokens" in str(AnswerCutOff())
