"""RSA keys for doubles, from a pool: to generate one takes longer than most tests."""

from __future__ import annotations

from functools import cache
from itertools import cycle
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa

# More than any test uses, so that all keys of a test differ. Doubles that outlive it may have the same ones.
_POOL_SIZE: Final = 16
_numbers = cycle(range(_POOL_SIZE))


def pooled_rsa_key() -> rsa.RSAPrivateKey:
    """Return the next key of the pool, of 2048 bits; a key comes again after 16 calls."""
    return _key(next(_numbers))


def foreign_rsa_key() -> rsa.RSAPrivateKey:
    """Return a key that is not of the pool: a forger's, or the successor of a key of the pool."""
    return _key(_POOL_SIZE)


@cache
def _key(number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
