"""Keys: that a process has those which its services need, and that they are keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic import SecretStr

from gateway.config.path import Path
from gateway.config.pem import parse_private_key, parse_public_key
from gateway.config.purpose import (
    GRANT_SIGNER,
    GRANT_VERIFIERS,
    PURPOSES,
    has_keys,
    own_key,
    runs_everything,
)
from gateway.config.report import Report
from gateway.config.schema import Config, KeySetConfig, ServiceName
from gateway.domain.key import Purpose

_SHORTEST: Final = 32


def check_keys(config: Config, report: Report) -> None:
    for name, keys in (("current", config.keys.current), ("previous", config.keys.previous)):
        _check_material(keys, ("keys", name), report)
    if not report.is_intact(("keys",), ("services", "run")):
        return
    if has_keys(config.keys) or not runs_everything(config.services.run):
        _check_complete(config, report)
    if config.keys.current.grant_private_key and GRANT_SIGNER not in config.services.run:
        message = "is for the catalog alone, which does not run here; give this process grantPublicKey only"
        report.warn(("keys", "current", "grantPrivateKey"), message)


def _check_material(keys: KeySetConfig, path: Path, report: Report) -> None:
    _check_secret(keys.secret, (*path, "secret"), report)
    for purpose in Purpose:
        _check_secret(own_key(keys, purpose), (*path, purpose.value), report)
    if keys.grant_private_key is not None:
        text = keys.grant_private_key.get_secret_value()
        _check_pem(parse_private_key, text, (*path, "grantPrivateKey"), report)
    if keys.grant_public_key is not None:
        _check_pem(parse_public_key, keys.grant_public_key, (*path, "grantPublicKey"), report)
    _check_pair(keys, path, report)


def _check_secret(secret: SecretStr | None, path: Path, report: Report) -> None:
    if secret is None:
        return
    text = secret.get_secret_value()
    if len(text.encode()) < _SHORTEST:
        report.fault(path, f"must have at least {_SHORTEST} bytes; `sluice keys new` makes one", text)


def _check_pem(parse: Callable[[str], object], text: str, path: Path, report: Report) -> None:
    try:
        parse(text)
    except ValueError as exc:
        report.fault(path, str(exc), text)


def _check_pair(keys: KeySetConfig, path: Path, report: Report) -> None:
    if keys.grant_private_key is None or keys.grant_public_key is None:
        return
    try:
        derived = parse_private_key(keys.grant_private_key.get_secret_value()).public_key()
        given = parse_public_key(keys.grant_public_key)
    except ValueError:
        return
    if derived != given:
        report.fault(
            (*path, "grantPublicKey"), "does not belong to grantPrivateKey; remove it, or correct one"
        )


def _check_complete(config: Config, report: Report) -> None:
    for service in ServiceName:
        if service in config.services.run:
            _check_purposes(service, config.keys.current, report)
    _check_grant_keys(config, report)


def _check_purposes(service: ServiceName, keys: KeySetConfig, report: Report) -> None:
    for purpose in PURPOSES[service]:
        if keys.secret is None and own_key(keys, purpose) is None:
            report.fault(
                ("keys", "current", purpose.value),
                f"is missing: {service} needs it; give it or keys.current.secret, as `sluice keys new` does",
            )


def _check_grant_keys(config: Config, report: Report) -> None:
    keys, run = config.keys.current, config.services.run
    # Whoever holds the secret could sign grants too: deriving the pair from it is for one process alone,
    # and for one that was not given half of another pair.
    derives = runs_everything(run) and keys.secret is not None and keys.grant_public_key is None
    if keys.grant_private_key is not None or derives:
        return
    if GRANT_SIGNER in run:
        report.fault(
            ("keys", "current", "grantPrivateKey"),
            "is missing: the catalog signs grants with it (`sluice keys new --split` makes a pair)",
        )
    elif keys.grant_public_key is None and not GRANT_VERIFIERS.isdisjoint(run):
        names = ", ".join(sorted(GRANT_VERIFIERS.intersection(run)))
        report.fault(
            ("keys", "current", "grantPublicKey"),
            f"is missing: {names} cannot tell whether a grant is the catalog's without it",
        )
