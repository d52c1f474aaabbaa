"""What Microsoft's "Create a user delegation SAS" and "Create a service SAS" say that a service checks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

FIRST_VERSION, NEWEST_VERSION = "2018-11-09", "2026-10-06"
_DIRECTORIES_SINCE = "2020-02-10"
_ENCRYPTION_SCOPES_SINCE = "2020-12-06"
_DELEGATED_USERS_SINCE = "2025-07-05"
_SIGNED_REQUESTS_SINCE = "2026-04-06"

# The order in which permissions must be written.
_PERMISSIONS = "racwdxyltmeopi"
_REQUIRED = frozenset({"sv", "sr", "se", "sp", "sig"})
# Of the key with which a user delegation SAS is signed; a service SAS is signed with the account's own.
_KEY_REQUIRED = frozenset({"skoid", "sktid", "ske", "sks", "skv"})
_OVERRIDES = ("rscc", "rscd", "rsce", "rscl", "rsct")
_OPTIONAL = frozenset({"st", "spr", "sip", *_OVERRIDES})
_KEY_OPTIONAL = frozenset({"skt", "sdd", "saoid", "suoid", "scid"})
# Known to the service, but not to this double.
_NOT_TAKEN = frozenset({"si", "ss", "srt", "ses", "skdutid", "sduoid", "srh", "srq"})
PARAMETERS = _REQUIRED | _OPTIONAL | _KEY_REQUIRED | _KEY_OPTIONAL | _NOT_TAKEN
_TIME_FORMATS = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%fZ")


class AccessDenied(Exception):
    """A request that the storage account refuses, by Azure's code."""

    def __init__(self, code: str, reason: str, status: int = 403) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationKey:
    """A user delegation key as the service gave it out."""

    oid: str
    tid: str
    start: str
    expiry: str
    service: str
    version: str
    value: str = field(repr=False)

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.oid, self.tid, self.start, self.expiry, self.service, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sas:
    """The parameters of a token, each known and in its form."""

    values: Mapping[str, str] = field(repr=False)

    @property
    def is_delegated(self) -> bool:
        return "skoid" in self.values

    @property
    def resource(self) -> str:
        return self.values["sr"]

    @property
    def permissions(self) -> str:
        return self.values["sp"]

    @property
    def key_fields(self) -> tuple[str, ...]:
        return tuple(self.values.get(name, "") for name in ("skoid", "sktid", "skt", "ske", "sks", "skv"))

    @property
    def depth(self) -> int:
        return int(self.values["sdd"])

    def signed_path(self, container: str, path: str) -> str:
        """Return the resource that the token must have been signed for, to open a path."""
        if self.resource == "c":
            return container
        segments = path.split("/")
        if self.resource == "b":
            return f"{container}/{path}"
        if len(segments) < self.depth:
            raise AccessDenied("AuthenticationFailed", "the path is above the signed directory")
        return "/".join([container, *segments[: self.depth]])

    def check_signature(self, key: bytes, account: str, signed_path: str) -> None:
        text = self.string_to_sign(f"/blob/{account}/{signed_path}")
        digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
        if not hmac.compare_digest(base64.b64encode(digest).decode(), self.values["sig"]):
            raise AccessDenied("AuthenticationFailed", "the signature does not match")

    def check_times(self, now: datetime) -> None:
        for first, last in (("st", "se"), ("skt", "ske")) if self.is_delegated else (("st", "se"),):
            start = self.values.get(first)
            if start and parse_time(start) > now:
                raise AccessDenied("AuthenticationFailed", f"{first} has not come yet")
            if parse_time(self.values[last]) <= now:
                raise AccessDenied("AuthenticationFailed", f"{last} is over")

    def string_to_sign(self, resource: str) -> str:
        version = self.values["sv"]
        names = [*(self._names_of_the_key(version) if self.is_delegated else ["si"])]
        names += ["sip", "spr", "sv", "sr", "snapshot"]
        if version >= _ENCRYPTION_SCOPES_SINCE:
            names += ["ses"]
        if version >= _SIGNED_REQUESTS_SINCE and self.is_delegated:
            names += ["srh", "srq"]
        head = [self.values.get(name, "") for name in ("sp", "st", "se")]
        return "\n".join([*head, resource, *(self.values.get(name, "") for name in (*names, *_OVERRIDES))])

    def _names_of_the_key(self, version: str) -> list[str]:
        names = ["skoid", "sktid", "skt", "ske", "sks", "skv"]
        if version >= _DIRECTORIES_SINCE:
            names += ["saoid", "suoid", "scid"]
        if version >= _DELEGATED_USERS_SINCE:
            names += ["skdutid", "sduoid"]
        return names


def parse_sas(values: Mapping[str, str]) -> Sas:
    """Return a token whose parameters are all there and in their form, or refuse it."""
    # What belongs to a key must be there with all of it: a service SAS has nothing of one.
    delegated = bool((_KEY_REQUIRED | _KEY_OPTIONAL) & set(values))
    if missing := sorted((_REQUIRED | (_KEY_REQUIRED if delegated else frozenset())) - set(values)):
        raise AccessDenied("AuthenticationFailed", f"without {missing}")
    if taken := sorted(_NOT_TAKEN & set(values)):
        raise AccessDenied("AuthenticationFailed", f"not understood here: {taken}")
    _check_versions(values)
    if not values["sp"] or re.fullmatch("".join(f"{each}?" for each in _PERMISSIONS), values["sp"]) is None:
        raise AccessDenied("AuthenticationFailed", "sp is not in order")
    if values.get("sks", "b") != "b" or values.get("spr", "https") not in ("https", "https,http"):
        raise AccessDenied("AuthenticationFailed", "sks or spr has an unknown value")
    for name in ("st", "se", "skt", "ske"):
        if values.get(name):
            parse_time(values[name])
    _check_resource(values)
    return Sas(values=dict(values))


def parse_time(text: str) -> datetime:
    for form in _TIME_FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise AccessDenied("AuthenticationFailed", "a time is not in a form that the service takes")


def _check_versions(values: Mapping[str, str]) -> None:
    for name in ("sv", "skv") if "skv" in values else ("sv",):
        if re.fullmatch(r"\d{4}-\d\d-\d\d", values[name]) is None:
            raise AccessDenied("AuthenticationFailed", f"{name} is no version")
        if not FIRST_VERSION <= values[name] <= NEWEST_VERSION:
            raise AccessDenied("AuthenticationFailed", f"{name} is not a version that has such tokens")


def _check_resource(values: Mapping[str, str]) -> None:
    kind, depth = values["sr"], values.get("sdd")
    if kind not in ("b", "c", "d") or (kind == "d") != (depth is not None):
        raise AccessDenied("AuthenticationFailed", "sr is unknown, or sdd does not go with it")
    if kind == "d" and (values["sv"] < _DIRECTORIES_SINCE or not re.fullmatch(r"0|[1-9]\d?", depth or "")):
        raise AccessDenied("AuthenticationFailed", "sdd is no depth, or sv is too old for directories")
