"""Which model answers for which role is decided by the environment, then by `models.yaml`."""

import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from agents.configuration.model_roles import InvalidModels, ModelSpec, model_of, parse_models, price_of, spec_of
from agents.models.endpoint import EndpointModel
from agents.models.errors import AnswerCutOff, ModelHalfConfigured, ModelUnavailable
from agents.models.offline.model import OfflineModel
from config.settings import FleetSettings

GENERAL = {"llm_base_url": "http://127.0.0.1:1/v1", "llm_model": "small", "llm_api_key": "general"}
FILE = """
endpoints:
  local: {base_url: "http://127.0.0.1:2/v1/", concurrency: 2}
  cloud: {base_url: "https://cloud.example/v1", api_key_from: CLOUD_KEY, concurrency: 8}
default: {endpoint: local, model: tiny, params: {max_tokens: 500}}
roles:
  dialogue: {endpoint: cloud, model: large, params: {temperature: 0.3}}
  packer: {model: medium}
  mood_watcher: {model: offline}
"""


def configured(**values: str | None) -> FleetSettings:
    return FleetSettings(**{"llm_base_url": None, "llm_model": None, "llm_api_key": None, **values})  # type: ignore[arg-type]


def some(spec: ModelSpec | None) -> ModelSpec:
    assert spec is not None
    return spec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(tmp_path))
    (tmp_path / "models.yaml").write_text(FILE, encoding="utf-8")
    return tmp_path


def test_tokens_have_the_price_of_the_table(folder: Path) -> None:
    prices = "prices:\n  large: {input: 2.5, output: 10}\n"
    (folder / "models.yaml").write_text(FILE + prices, encoding="utf-8")

    assert price_of("large", 1_000_000, 100_000) == 3.5
    assert price_of("tiny", 1_000_000, 100_000) is None


@pytest.mark.parametrize("unset", [None, ""])
def test_nothing_configured_means_offline(unset: str | None) -> None:
    settings = configured(llm_base_url=unset, llm_model=unset, llm_api_key=unset)

    assert isinstance(model_of(settings, "dialogue"), OfflineModel)


async def test_an_address_with_a_name_means_that_endpoint_for_every_role() -> None:
    model = model_of(configured(**GENERAL), "packer")

    assert isinstance(model, EndpointModel)
    assert model.name == "small"
    await model.aclose()


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"llm_base_url": "http://127.0.0.1:1/v1"}, "MINDBUS_LLM_MODEL"),
        ({"llm_model": "qwen"}, "MINDBUS_LLM_BASE_URL"),
        ({"llm_api_key": "key"}, "MINDBUS_LLM_BASE_URL"),
    ],
)
def test_half_a_configuration_is_an_error_that_names_the_other_half(values: dict[str, str], missing: str) -> None:
    with pytest.raises(ModelHalfConfigured, match=rf"missing: {missing}"):
        spec_of(configured(**values), "dialogue")


def test_a_role_has_a_model_of_its_own_by_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDBUS_LLM_MOOD_WATCHER_MODEL", "tiny")
    monkeypatch.setenv("MINDBUS_LLM_DIALOGUE_BASE_URL", "http://127.0.0.1:3/v1")
    settings = configured(**GENERAL)

    mood, dialogue, packer = (some(spec_of(settings, role)) for role in ("mood_watcher", "dialogue", "packer"))

    assert (mood.model, mood.base_url, mood.api_key) == ("tiny", GENERAL["llm_base_url"], "general")
    assert (packer.model, packer.base_url, packer.api_key) == ("small", GENERAL["llm_base_url"], "general")
    assert (dialogue.model, dialogue.base_url) == ("small", "http://127.0.0.1:3/v1")
    assert dialogue.api_key is None, "a key goes to the endpoint that it was given for"


def test_the_file_names_endpoints_and_models_of_roles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_KEY", "secret")
    settings = configured()

    dialogue, packer, context = (some(spec_of(settings, role)) for role in ("dialogue", "packer", "context"))

    assert (dialogue.base_url, dialogue.model, dialogue.api_key) == ("https://cloud.example/v1", "large", "secret")
    assert (dialogue.concurrency, dialogue.params.temperature, dialogue.params.max_tokens) == (8, 0.3, 500)
    assert (packer.base_url, packer.model, packer.concurrency) == ("http://127.0.0.1:2/v1", "medium", 2)
    assert (context.model, context.api_key) == ("tiny", None)
    assert spec_of(settings, "mood_watcher") is None


def test_a_roles_line_comes_before_the_general_variables_and_its_own_before_the_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDBUS_LLM_DIALOGUE_MODEL", "huge")
    settings = configured(**GENERAL)

    dialogue, context = some(spec_of(settings, "dialogue")), some(spec_of(settings, "context"))

    assert (dialogue.base_url, dialogue.model, dialogue.api_key) == ("https://cloud.example/v1", "huge", None)
    assert (context.base_url, context.model, context.api_key) == (GENERAL["llm_base_url"], "small", "general")


def test_a_file_that_names_no_such_endpoint_says_so() -> None:
    with pytest.raises(InvalidModels, match="there is no endpoint 'lokal'"):
        parse_models(b"roles: {dialogue: {endpoint: lokal, model: x}}", "models.yaml")


def test_a_failure_says_what_to_do_and_survives_a_checkpoint() -> None:
    failure = pickle.loads(pickle.dumps(ModelUnavailable("HTTP 503", delay=timedelta(seconds=9))))

    assert str(failure).endswith("try again later. (HTTP 503)")
    assert failure.delay == timedelta(seconds=9)
    assert "raise max_tokens" in str(AnswerCutOff())
