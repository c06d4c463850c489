"""Layout of cached units in Redis: a hash per unit, sets and sorted sets as indexes (spec 000 §4.3.1).

A script changes a unit and its indexes atomically. Its KEYS are the unit's hash, then its reverse index; the first
argument is its id. Scripts use keys that they read from the reverse index: for one Redis, not for a cluster.
"""

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
# Reverse index, the indexes that a unit is in: after its hash is evicted, nothing else tells.
REVERSE = "swm_idx:of:"

_REST = ("owner", "visibility", "readers", "writers", "ref", "source", "version")
_rest = TypeAdapter(dict[str, Any])


def fields_of(kem: Kem) -> dict[str, bytes]:
    """Fields of the specification; `rest` is rights, version and source as JSON, `model` the vector's."""
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


def kem_of(fields: Mapping[bytes, bytes]) -> Kem:
    """The unit of a hash; vectors are little-endian float32."""
    vector = fields.get(b"embeddings")
    content = fields.get(b"content")
    return Kem.model_validate(
        {
            "id": fields[b"id"].decode(),
            "content_type": fields[b"content_type"].decode(),
            "content": None if content is None else content.decode(),
            "metadata": from_json(fields[b"metadata"]),
            "embeddings": None if vector is None else Embedding.kept(fields[b"model"].decode(), vector),
            "created_at": fields[b"created_at"].decode(),
            "updated_at": fields[b"updated_at"].decode(),
            **_rest.validate_json(fields[b"rest"]),
        }
    )


def by_metadata(key: str, text: str) -> str:
    """Key of the set of units with this text under this metadata key."""
    return f"{BY_METADATA}{key}:{text}"


def seconds(time: datetime) -> int:
    """Score in the time indexes: whole seconds of the epoch."""
    return int(time.timestamp() // 1)


_LEAVE_INDEXES = f"""
for _, index in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    redis.call('SREM', index, ARGV[1])
end
redis.call('DEL', KEYS[2])
redis.call('ZREM', '{BY_CREATED}', ARGV[1])
local was_known = redis.call('ZREM', '{BY_UPDATED}', ARGV[1])
"""

# Further arguments: time to live in ms, created, updated, number of indexes, the indexes, fields and values.
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

# Returns 1 for the first of several listeners that clean up after the same eviction.
CLEAN = f"if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end {_LEAVE_INDEXES} return was_known"
