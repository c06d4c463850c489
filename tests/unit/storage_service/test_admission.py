"""What a manifest must be before its bytes are looked at."""

import pytest

from bus_schema.artifacts import AIContext, Manifest
from bus_schema.identities import Principal
from storage_service.errors import ArtifactTooLarge, NotTheProducer, SecretInParameters
from storage_service.registration import admit
from tests.clocks import NOON

LIMIT = 1000


def a_manifest(by: str = "agent.researcher.1", owner: str = "agent.researcher", **changes: object) -> Manifest:
    fields: dict[str, object] = {
        "id": "art_1",
        "trace_id": "run_1",
        "created_by": by,
        "created_at": NOON,
        "artifact_type": "draft",
        "content_type": "text/plain",
        "uri": "file:///srv",
        "size_bytes": LIMIT,
        "checksum": f"sha256:{'0' * 64}",
        "owner": owner,
    }
    return Manifest.model_validate(fields | changes)


def with_parameters(*names: str) -> Manifest:
    return a_manifest(context=AIContext(model_params=dict.fromkeys(names, 1)))


@pytest.mark.parametrize(
    ("requester", "created_by", "owner"),
    [
        ("agent.researcher.1", "agent.researcher.1", "agent.researcher"),
        ("agent.researcher.2", "agent.researcher.1", "agent.researcher"),
        ("agent.researcher", "agent.researcher.1", "agent.researcher"),
        ("user.anna.petrova", "user.anna.petrova", "user.anna.petrova"),
        ("svc.kps", "svc.kps", "svc.kps"),
    ],
)
def test_any_instance_of_its_maker_may_register_an_artifact(requester: str, created_by: str, owner: str) -> None:
    admit(a_manifest(created_by, owner), Principal(requester), max_bytes=LIMIT)


@pytest.mark.parametrize(
    ("requester", "created_by", "owner"),
    [
        ("agent.critic.1", "agent.researcher.1", "agent.researcher"),
        ("agent.critic.1", "agent.critic.1", "agent.researcher"),
        ("agent.critic.1", "agent.researcher.1", "agent.critic"),
        ("user.local", "agent.researcher.1", "agent.researcher"),
        ("svc.orchestrator", "agent.researcher.1", "agent.researcher"),
        ("user.researcher", "agent.researcher", "agent.researcher"),
    ],
)
def test_nobody_registers_in_anothers_name(requester: str, created_by: str, owner: str) -> None:
    with pytest.raises(NotTheProducer):
        admit(a_manifest(created_by, owner), Principal(requester), max_bytes=LIMIT)


def test_the_limit_is_the_largest_size_that_is_taken() -> None:
    admit(a_manifest(size_bytes=LIMIT), Principal("agent.researcher.1"), max_bytes=LIMIT)

    with pytest.raises(ArtifactTooLarge) as refused:
        admit(a_manifest(size_bytes=LIMIT + 1), Principal("agent.researcher.1"), max_bytes=LIMIT)

    assert refused.value.details == {"size_bytes": LIMIT + 1, "max_bytes": LIMIT}


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "apiKey", "API-KEY", "x-api-key", "openai_api_key", "OPENAI.API.KEY", "key"),
        *("token", "access_token", "accessToken", "hf_token", "Authorization", "auth", "bearer"),
        *("password", "db_password", "passwd", "client_secret", "clientSecret", "aws_secret_access_key"),
        *("private_key", "session_cookie", "credentials", "пароль", "секретный_ключ", "токен"),
    ],
)
def test_parameters_that_are_named_like_secrets_are_refused(name: str) -> None:
    with pytest.raises(SecretInParameters) as refused:
        admit(with_parameters("temperature", name), Principal("agent.researcher.1"), max_bytes=LIMIT)

    assert refused.value.details == {"names": [name]}


@pytest.mark.parametrize(
    "name",
    [
        *("temperature", "top_p", "max_tokens", "maxTokens", "max_completion_tokens", "seed", "n", "stop"),
        *("stop_token", "eos_token", "forced_bos_token", "logit_bias", "monkey", "keywords", "author", "температура"),
    ],
)
def test_ordinary_parameters_are_taken(name: str) -> None:
    admit(with_parameters(name), Principal("agent.researcher.1"), max_bytes=LIMIT)
