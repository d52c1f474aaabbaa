"""Recipients, platform services, and what they may see."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.config.address import is_loopback, parse_listener
from gateway.config.checks.unique import Unique
from gateway.config.nearest import nearest
from gateway.config.path import Path
from gateway.config.pem import parse_verification_key
from gateway.config.report import Report
from gateway.config.schema import Config, PrincipalConfig, RecipientConfig, ServiceName
from gateway.domain.allowance import method_names
from gateway.domain.name import fold
from gateway.domain.principal import ALL_SHARES

_SAME_NAME = "is the name of {first} already (upper and lower case are the same); rename one"
_EASILY_GUESSED = 16


def check_access(config: Config, report: Report) -> None:
    _check_recipients(config, report)
    _check_principals(config, report)
    _check_bearer_token(config, report)
    if config.allow_anonymous:
        _check_anonymous(config, report)
    elif ServiceName.CATALOG in config.services.run and _is_known_who_may_ask(report):
        _check_somebody_may_ask(config, report)


def _is_known_who_may_ask(report: Report) -> bool:
    return report.is_intact(("recipients",), ("principals",), ("authorization",), ("services", "run"))


def _check_recipients(config: Config, report: Report) -> None:
    known = _known_shares(config, report)
    names = Unique(report, _SAME_NAME)
    hashes = Unique(report, "is the hash of {first} already; a token belongs to one recipient")
    identities = Unique(report, "speaks for {first} already; an identity belongs to one recipient")
    for number, recipient in enumerate(config.recipients):
        path: Path = ("recipients", number)
        _check_name(recipient.name, (*path, "name"), names, report)
        for index, token in enumerate(recipient.tokens):
            hashes.add(token.hash, (*path, "tokens", index, "hash"), token.hash)
        for index, identity in enumerate(recipient.identities):
            place = (*path, "identities", index)
            identities.add((identity.issuer, identity.subject), place, identity.subject)
        _check_shares(recipient, path, known, report)


def _check_principals(config: Config, report: Report) -> None:
    known = _known_shares(config, report)
    names = Unique(report, _SAME_NAME)
    certificates = Unique(report, "is the certificate of {first} already")
    for number, principal in enumerate(config.principals):
        path: Path = ("principals", number)
        _check_name(principal.name, (*path, "name"), names, report)
        if principal.certificate:
            place = (*path, "certificate")
            certificates.add(principal.certificate, place, principal.certificate)
        for index, key in enumerate(principal.public_keys):
            _check_public_key(key, (*path, "publicKeys", index), report)
        if not principal.certificate and not principal.public_keys:
            report.fault(path, "has neither certificate nor publicKeys, so nobody could be recognised as it")
        _check_shares(principal, path, known, report)
        _check_methods(principal, path, report)


def _check_methods(principal: PrincipalConfig, above: Path, report: Report) -> None:
    known = tuple(method_names())
    for index, name in enumerate(principal.methods or ()):
        if name not in known:
            report.fault(
                (*above, "methods", index),
                "is neither a service nor a method of one, such as Catalog or Catalog.Resolve",
                name,
                nearest(name, known),
            )


def _check_name(name: str, path: Path, names: Unique, report: Report) -> None:
    if not name.isprintable() or name != name.strip():
        report.fault(path, "must be printable, without spaces around it", name)
    names.add(fold(name), path, name)


def _check_public_key(text: str, path: Path, report: Report) -> None:
    try:
        parse_verification_key(text)
    except ValueError as exc:
        report.fault(path, str(exc), text)


def _known_shares(config: Config, report: Report) -> Mapping[str, str] | None:
    """Return the shares by folded name, or None where they are not all known."""
    if ServiceName.CATALOG not in config.services.run or not report.is_intact(("shares",)):
        return None
    return {fold(share.name): share.name for share in config.shares}


def _check_shares(
    grantee: RecipientConfig | PrincipalConfig, above: Path, known: Mapping[str, str] | None, report: Report
) -> None:
    if ALL_SHARES in grantee.shares:
        if len(grantee.shares) > 1:
            report.fault((*above, "shares"), 'must be "*" for all shares, or a list of names, not both')
        return
    for index, name in enumerate(grantee.shares):
        if known is not None and fold(name) not in known:
            meant = nearest(name, known.values())
            report.fault((*above, "shares", index), "is not the name of a share", name, meant)


def _check_bearer_token(config: Config, report: Report) -> None:
    if config.authorization is None:
        return
    path: Path = ("authorization", "bearerToken")
    token = config.authorization.bearer_token.get_secret_value()
    if not token:
        report.fault(path, "must not be empty; remove authorization, or set a token")
    elif not token.isascii() or not token.isprintable() or " " in token:
        report.fault(path, "must be ASCII without spaces, or no client could send it", token)
    elif len(token) < _EASILY_GUESSED:
        report.warn(path, "is short enough to be guessed, and opens every share")


def _check_anonymous(config: Config, report: Report) -> None:
    path: Path = ("allowAnonymous",)
    if not is_loopback(config.host):
        report.fault(path, "is allowed with a loopback host only, such as host: 127.0.0.1", config.host)
    elif not _stays_here(config.services.listen):
        # An edge elsewhere, on any host, would serve everybody on this catalog's word.
        report.fault(path, "is allowed with services.listen on loopback only", config.services.listen)
    elif config.recipients or config.authorization is not None:
        report.fault(path, "serves everybody everything: remove it, or recipients and authorization")


def _stays_here(listen: str) -> bool:
    try:
        return not listen or parse_listener(listen).is_private
    except ValueError:
        # Reported as such.
        return True


def _check_somebody_may_ask(config: Config, report: Report) -> None:
    if config.authorization is not None or config.principals:
        return
    if any(recipient.tokens or recipient.identities for recipient in config.recipients):
        return
    report.fault(
        ("recipients",),
        "nobody could read anything: add recipients with tokens (`sluice token new NAME` makes one) or "
        "authorization.bearerToken; allowAnonymous: true serves everybody, on loopback only",
    )
