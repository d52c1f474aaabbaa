"""What Redis does in one step. All keys of a script have one hash tag, so that a Cluster runs it too.

Sent whole each time: a Redis that has restarted or failed over knows no script, and they are short. Reads are
guarded, as another type may lie under our name; a key that lacks an expiration is not ours either.
"""

from __future__ import annotations

from typing import Final

# KEYS: value, lease. ARGV: token, milliseconds, the value that counts as none.
# Returns the value, or 1 when the lease is the caller's and 0 when it is another's.
CLAIM: Final = """
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' and value ~= ARGV[3] then return value end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
local left = redis.call('PTTL', KEYS[2])
if left >= 0 and left <= 2 * tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
"""

# KEYS: lease. ARGV: token, milliseconds.
RENEW: Final = """
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""

# KEYS: value, lease. ARGV: token, milliseconds, the value that counts as none, the new value.
# The lease ends first, so that it does when there is no room for the value.
PUBLISH: Final = """
local is_mine = redis.pcall('GET', KEYS[2]) == ARGV[1]
if is_mine then redis.call('DEL', KEYS[2]) end
local value = redis.pcall('GET', KEYS[1])
if not is_mine and type(value) == 'string' and value ~= ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[2])
return 1
"""

# KEYS: lease. ARGV: token.
RELEASE: Final = """
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""

# KEYS: index. ARGV: name, milliseconds. By the clock of Redis, whatever those of the replicas say.
ENLIST: Final = """
local now = redis.call('TIME')[1] * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""
