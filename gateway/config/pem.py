"""Public and private keys as PEM."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

_WEAKEST_RSA = 2048


def parse_private_key(text: str) -> Ed25519PrivateKey:
    """Parse an Ed25519 private key; raise ``ValueError`` in words that do not quote it."""
    try:
        _check_nothing_follows(text)
        key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, Ed25519PrivateKey):
        return key
    # Without a cause: that may quote the key.
    raise ValueError("must be an Ed25519 private key in PEM; `sluice keys new --split` makes one")


def parse_public_key(text: str) -> Ed25519PublicKey:
    key = _public_key(text)
    if isinstance(key, Ed25519PublicKey):
        return key
    raise ValueError("must be an Ed25519 public key in PEM; `sluice keys new --split` makes one")


def parse_verification_key(text: str) -> Ed25519PublicKey | EllipticCurvePublicKey | RSAPublicKey:
    """Parse a key that verifies a platform service's JWTs."""
    key = _public_key(text)
    if isinstance(key, Ed25519PublicKey):
        return key
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return key
    if isinstance(key, RSAPublicKey) and key.key_size >= _WEAKEST_RSA:
        return key
    raise ValueError(
        f"must be one public key in PEM: Ed25519, P-256, or RSA of at least {_WEAKEST_RSA} bits; "
        "a second one is an entry of its own"
    )


def _public_key(text: str) -> object:
    try:
        _check_nothing_follows(text)
        return load_pem_public_key(text.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _check_nothing_follows(text: str) -> None:
    # The library reads the first key and no further: a second one would never be used, and nobody told.
    if text.partition("-----END ")[2].partition("-----")[2].strip():
        raise ValueError("more than one key")
