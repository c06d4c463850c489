"""Units as Redis hashes, hashes as units (spec 000 §4.3.1)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from bus_schema.embeddings import Embedding
from bus_schema.kem import Kem

KEM = "swm_kem:"
BY_METADATA = "swm_idx:meta:"
BY_CREATED = "swm_idx:date:created_at"
BY_UPDATED = "swm_idx:date:updated_at"
# Which indexes a unit is in: when its hash has been evicted, nothing else says so any more.
REVERSE = "swm_idx:of:"

_REST = ("owner", "visibility", "readers", "writers", "ref", "source", "version")
_rest = TypeAdapter(dict[str, Any])


def fields_of(kem: Kem) -> dict[str, bytes]:
    """The fields of the specification, then `rest`: rights, version, source as JSON; `model` is the vector's."""
    rest = kem.model_dump(mode="json", include=set(_REST), exclude_none=True)
    fields = {
        "id": kem.id.encode(),
        "content_type": kem.content_type.encode(),
        "metadata": to_json(kem.metadata),
        "created_at": kem.created_at.isoformat().encode(),
        "updated_at": kem.updated_at.isoformat().encode(),
        "created_at_ts": b"%d" % seconds(kem.created_at),
        "updated_at_ts": b"%d" % seconds(kem.updated_at),
        "rest": to_json(rest),
    }
    if kem.content is not None:
        fields["content"] = kem.content.encode()
    if kem.embeddings is not None:
        fields |= {"embeddings": kem.embeddings.raw, "model": kem.embeddings.model.encode()}
    return fields


def kem_of(found: Mapping[bytes, bytes]) -> Kem:
    """The unit that a hash keeps; numbers of a vector are little-endian float32, one after the other."""
    vector = found.get(b"embeddings")
    content = found.get(b"content")
    return Kem.model_validate(
        {
            "id": found[b"id"].decode(),
            "content_type": found[b"content_type"].decode(),
            "content": None if content is None else content.decode(),
            "metadata": from_json(found[b"metadata"]),
            "embeddings": None if vector is None else Embedding.kept(found[b"model"].decode(), vector),
            "created_at": found[b"created_at"].decode(),
            "updated_at": found[b"updated_at"].decode(),
            **_rest.validate_json(found[b"rest"]),
        }
    )


def by_metadata(key: str, text: str) -> str:
    """The set of the units with this text under this key."""
    return f"{BY_METADATA}{key}:{text}"


def seconds(time: datetime) -> int:
    """As the indexes of times count."""
    return int(time.timestamp() // 1)


_LEAVE_INDEXES = f"""
for _, index in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    redis.call('SREM', index, ARGV[1])
end
redis.call('DEL', KEYS[2])
redis.call('ZREM', '{BY_CREATED}', ARGV[1])
local was_known = redis.call('ZREM', '{BY_UPDATED}', ARGV[1])
"""

# Further arguments: how long it lives in ms, created, updated, how many indexes, those, its fields with their values.
PUT = f"""
{_LEAVE_INDEXES}
local first_field = 6 + tonumber(ARGV[5])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, first_field))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', '{BY_CREATED}', ARGV[3], ARGV[1])
redis.call('ZADD', '{BY_UPDATED}', ARGV[4], ARGV[1])
for place = 6, first_field - 1 do
    redis.call('SADD', ARGV[place], ARGV[1])
    redis.call('SADD', KEYS[2], ARGV[place])
end
"""

DROP = f"{_LEAVE_INDEXES} return redis.call('DEL', KEYS[1])"

# Of all who hear that a unit has been evicted, one alone finds it still known.
CLEAN = f"if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end {_LEAVE_INDEXES} return was_known"
