"""What a manifest must be before storage looks at a single byte."""

import re

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from mindbus.principal import Principal
from storage_service.refusals import ArtifactTooLarge, NotTheProducer, SecretInParameters

_SECRET = (
    *("secret", "password", "passwd", "passphrase", "credential", "authorization", "bearer", "cookie"),
    *("apikey", "accesskey", "privatekey", "signingkey", "пароль", "секрет"),
)
_SECRET_ALONE = {"token", "key", "auth", "pwd", "токен", "ключ"}
# Names of generation parameters, not of credentials.
_MARKERS = {"bos", "eos", "pad", "unk", "sep", "cls", "mask", "stop", "start", "end"}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAK = re.compile(r"[\W_]+")


def admit(manifest: Manifest, principal: Principal, *, max_bytes: int) -> None:
    """Raises NotTheProducer, ArtifactTooLarge, SecretInParameters."""
    if owner_of(manifest.created_by) != principal.owner or manifest.owner != principal.owner:
        raise NotTheProducer(requester=principal.identity)
    if manifest.size_bytes > max_bytes:
        raise ArtifactTooLarge(size_bytes=manifest.size_bytes, max_bytes=max_bytes)
    names = manifest.context.model_params if manifest.context else {}
    if secrets := sorted(name for name in names if _looks_secret(name)):
        raise SecretInParameters(names=secrets)


def _looks_secret(name: str) -> bool:
    words = _BREAK.split(_CAMEL.sub("_", name).lower())
    joined = "".join(words)
    is_credential_token = words[-1] == "token" and not _MARKERS.intersection(words[:-1])
    return joined in _SECRET_ALONE or is_credential_token or any(secret in joined for secret in _SECRET)
