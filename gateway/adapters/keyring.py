"""The keys of a process, by purpose: derived from one secret, or given one by one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from gateway.config.faults import ConfigError, Fault
from gateway.config.pem import parse_private_key, parse_public_key
from gateway.config.purpose import (
    GRANT_SIGNER,
    GRANT_VERIFIERS,
    has_keys,
    own_key,
    purposes_of,
    runs_everything,
)
from gateway.config.schema import Config, KeysConfig, KeySetConfig, ServiceName
from gateway.domain.key import Key, Keys, Purpose

_FILE: Final = "embedded.key"
_KEY_BYTES: Final = 32
_ID_BYTES: Final = 6
_SECRET: Final = re.compile(rb"[A-Za-z0-9_-]{43}\n")
# Part of every derived key: changing one turns all tokens, URLs and sealed values of its purpose away.
_INFO: Final = "sluice/v1/{purpose}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """The keys that one process was given, and no others."""

    _keys: Mapping[Purpose, Keys] = field(repr=False)
    _grant_private: tuple[str, Ed25519PrivateKey] | None = field(default=None, repr=False)
    _grant_public: Mapping[str, Ed25519PublicKey] = field(default_factory=dict, repr=False)

    def keys(self, purpose: Purpose) -> Keys:
        """Return the keys of a purpose; raise ``ConfigError`` when this process was not given them."""
        found = self._keys.get(purpose)
        if found is None:
            raise _missing(f"keys.current.{purpose}", "give it or keys.current.secret")
        return found

    def grant_private(self) -> tuple[str, Ed25519PrivateKey]:
        """Return the key that signs grants, with its id; raise unless this process runs the catalog."""
        if self._grant_private is None:
            raise _missing("keys.current.grantPrivateKey", "only a process that runs the catalog has it")
        return self._grant_private

    def grant_public(self) -> Mapping[str, Ed25519PublicKey]:
        """Return the keys that verify grants by id, the previous one too."""
        return self._grant_public


def open_keyring(config: Config, state_dir: Path) -> Keyring:
    """Return the keys of this process, from the configuration or else from the state directory."""
    run = config.services.run
    # Processes that each made up keys of their own could not read each other's tokens.
    if runs_everything(run) and not has_keys(config.keys):
        return build_keyring(embedded_keys(state_dir), run)
    return build_keyring(config.keys, run)


def build_keyring(keys: KeysConfig, run: Sequence[ServiceName]) -> Keyring:
    """Return the keys that these services need."""
    found = {purpose: _keys(keys, purpose) for purpose in purposes_of(run)}
    verifies = not GRANT_VERIFIERS.isdisjoint(run)
    return Keyring(
        _keys={purpose: pair for purpose, pair in found.items() if pair is not None},
        _grant_private=_grant_private(keys, run) if GRANT_SIGNER in run else None,
        _grant_public=dict(_grant_public(keys, run)) if verifies else {},
    )


def embedded_keys(state_dir: Path) -> KeysConfig:
    """Return the keys of this state directory, which are made when they are first asked for."""
    file = state_dir / _FILE
    try:
        if not file.exists():
            _create(file)
        secret = _read(file)
    except OSError as exc:
        raise ConfigError(
            [
                Fault(
                    path="stateDir",
                    message=f"keys cannot be kept in {file} ({exc.strerror}): set another stateDir, or "
                    "keys.current.secret",
                )
            ]
        ) from exc
    return KeysConfig(current=KeySetConfig(secret=SecretStr(secret)))


def public_id(key: Ed25519PublicKey) -> str:
    """Return a short name for a public key."""
    return _text(hashlib.sha256(key.public_bytes_raw()).digest()[:_ID_BYTES])


def _keys(keys: KeysConfig, purpose: Purpose) -> Keys | None:
    current = _key(keys.current, purpose)
    return Keys(current=current, previous=_key(keys.previous, purpose)) if current else None


def _key(keys: KeySetConfig, purpose: Purpose) -> Key | None:
    material = own_key(keys, purpose) or keys.secret
    if material is None:
        return None
    secret = _derive(material, purpose)
    # An id is seen by everybody, so it is not a part or a plain hash of what it names.
    return Key(id=_text(hmac.digest(secret, b"key id", "sha256")[:_ID_BYTES]), secret=secret)


def _grant_private(keys: KeysConfig, run: Sequence[ServiceName]) -> tuple[str, Ed25519PrivateKey] | None:
    private = _private_key(keys.current, run)
    return (public_id(private.public_key()), private) if private else None


def _grant_public(keys: KeysConfig, run: Sequence[ServiceName]) -> Iterator[tuple[str, Ed25519PublicKey]]:
    for generation in (keys.current, keys.previous):
        private = _private_key(generation, run)
        if private is not None:
            yield public_id(private.public_key()), private.public_key()
        elif generation.grant_public_key is not None:
            public = parse_public_key(generation.grant_public_key)
            yield public_id(public), public


def _private_key(keys: KeySetConfig, run: Sequence[ServiceName]) -> Ed25519PrivateKey | None:
    if keys.grant_private_key is not None:
        return parse_private_key(keys.grant_private_key.get_secret_value())
    if keys.secret is not None and keys.grant_public_key is None and runs_everything(run):
        return Ed25519PrivateKey.from_private_bytes(_derive(keys.secret, "grant"))
    return None


def _derive(material: SecretStr, purpose: str) -> bytes:
    info = _INFO.format(purpose=purpose).encode()
    kdf = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info)
    return kdf.derive(material.get_secret_value().encode())


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _create(file: Path) -> None:
    """Put a fresh secret there whole or not at all, unless another process was quicker."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f".{_FILE}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(f"{secrets.token_urlsafe(_KEY_BYTES)}\n")
            stream.flush()
            os.fsync(stream.fileno())
        # Unlike a rename, a link does not take the place of a file that has appeared meanwhile.
        with suppress(FileExistsError):
            file.hardlink_to(draft)
    finally:
        draft.unlink()


def _read(file: Path) -> str:
    # Without blocking: a pipe in its place would hold up the start for ever.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        content = stream.read() if stat.S_ISREG(mode) else b""
    if stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise _unusable(file, f"others may read them: chmod 600 {file}")
    if not _SECRET.fullmatch(content):
        raise _unusable(file, "they are damaged; remove the file, and new ones are made")
    return content.decode().strip()


def _unusable(file: Path, reason: str) -> ConfigError:
    return ConfigError([Fault(path="stateDir", message=f"the keys in {file} cannot be used: {reason}")])


def _missing(path: str, fix: str) -> ConfigError:
    return ConfigError([Fault(path=path, message=f"is missing in this process; {fix}")])
