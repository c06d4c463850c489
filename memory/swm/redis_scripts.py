"""What happens to a unit in Redis at once or not at all.

KEYS are the unit's hash, then its reverse index; the first argument is its id. The scripts name keys that they find in
the reverse index, so they are for one Redis, not for a cluster of them.
"""

from memory.swm.redis_hashes import BY_CREATED, BY_UPDATED

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
