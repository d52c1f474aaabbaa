"""User delegation keys: what the account lends our identity to sign with, and for how long."""

from __future__ import annotations

import base64
import logging
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from xml.etree.ElementTree import Element

from gateway.domain.credential import AzureDelegationKey
from gateway.errors import Unavailable
from gateway.ports import Clock
from vendors.azure.config import AzureOptions
from vendors.azure.errors import unavailable
from vendors.azure.identity import Token
from vendors.http import Call, Reply, Request, http_date
from vendors.renewal import Renewed
from vendors.xml import parse_xml

# The version of the storage API that is asked for, and the one that a SAS is checked by.
API_VERSION: Final = "2023-11-03"

# Azure's limit, counted from the key's start, less a minute for its clock.
_LONGEST: Final = timedelta(days=7) - timedelta(minutes=1)
_AHEAD: Final = timedelta(minutes=30)
# What a key that could not be renewed signs with less left is of no use to anybody.
_LEAST: Final = timedelta(minutes=5)
_SLOW_ANSWER: Final = timedelta(seconds=30)
_NEEDS: Final = "the role Storage Blob Delegator on the storage account"
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
# These stand on lines of their own in what is signed.
_FIELD: Final = re.compile(r"[0-9A-Za-z:._-]{1,64}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationKey:
    """The texts are kept as Azure wrote them: it derives the key from them again."""

    oid: str
    tid: str
    start: str
    expiry: str
    service: str
    version: str
    secret: bytes = field(repr=False)
    starts_at: datetime
    expires_at: datetime

    @property
    def fields(self) -> dict[str, str]:
        """Return what of the key stands in a SAS, in the order in which Azure's SDK puts it."""
        return {
            "skoid": self.oid,
            "sktid": self.tid,
            "skt": self.start,
            "ske": self.expiry,
            "sks": self.service,
            "skv": self.version,
        }


class TokenSource(Protocol):
    async def get(self) -> Token: ...


class DelegationKeys:
    """One key for all credentials of a storage, fetched again well before they would outlive it."""

    def __init__(
        self,
        *,
        storage: str,
        endpoint: str,
        options: AzureOptions,
        tokens: TokenSource,
        http: Call,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._url = f"{endpoint}/?restype=service&comp=userdelegationkey"
        self._options = options
        self._tokens = tokens
        self._call = http
        self._clock = clock
        self._kept: Renewed[DelegationKey] = Renewed(self._fetch, ahead=_AHEAD, least=_LEAST, clock=clock)

    async def get(self, life: timedelta) -> DelegationKey:
        """Return a key that lives that long from now, or as long as Azure gives."""
        return await self._kept.get(life)

    def forget(self) -> None:
        """Drop the key: it was revoked."""
        self._kept.forget()

    async def ask(self, start: datetime, end: datetime) -> DelegationKey:
        """Ask for a key of that time, or of as much of it as Azure gives; it is not kept."""
        token = await self._tokens.get()
        now = self._clock()
        # Azure compares the start with its own clock, which may be behind ours.
        start -= self._options.clock_skew
        reply = await self._call(
            Request(
                method="POST",
                url=self._url,
                headers={
                    "authorization": f"Bearer {token.value}",
                    "content-type": "application/xml",
                    "x-ms-version": API_VERSION,
                },
                body=_key_info(start, min(end, start + _LONGEST)),
            )
        )
        if reply.status != 200:  # noqa: PLR2004 - the only status of success
            raise unavailable(reply, self._storage, doing="a user delegation key", needs=_NEEDS)
        self._compare_clocks(reply, now)
        return parse_key(reply.body)

    async def _fetch(self, life: timedelta) -> DelegationKey:
        now = self._clock()
        return await self.ask(now, now + max(self._options.key_life, 2 * life))

    def _compare_clocks(self, reply: Reply, now: datetime) -> None:
        """Warn of a clock that Azure's differs from by more than what credentials start early for."""
        theirs = http_date(reply.headers.get("date", ""))
        if theirs is not None and abs(now - theirs) > max(self._options.clock_skew, _SLOW_ANSWER):
            log.warning(
                "storage %s: this machine's clock and Azure's differ by %s, more than clockSkew covers",
                self._storage,
                abs(now - theirs),
            )


def parse_key(body: bytes) -> DelegationKey:
    """Return the key that Azure answered with; raise ``Unavailable`` when it is not one."""
    root = parse_xml(body)
    written = AzureDelegationKey(
        oid=_text(root, "SignedOid"),
        tid=_text(root, "SignedTid"),
        start=_text(root, "SignedStart"),
        expiry=_text(root, "SignedExpiry"),
        service=_text(root, "SignedService"),
        version=_text(root, "SignedVersion"),
        value=root.findtext("Value") or "",
    )
    return read_key(written)


def read_key(written: AzureDelegationKey) -> DelegationKey:
    """Return the key that Azure wrote; raise ``Unavailable`` when it is not one."""
    try:
        secret = base64.b64decode(written.value, validate=True)
        starts_at, expires_at = _moment(written.start), _moment(written.expiry)
    except ValueError as exc:
        raise _not_a_key() from exc
    # Without a secret anybody could sign.
    if not secret:
        raise _not_a_key()
    return DelegationKey(
        oid=written.oid,
        tid=written.tid,
        start=written.start,
        expiry=written.expiry,
        service=written.service,
        version=written.version,
        secret=secret,
        starts_at=starts_at,
        expires_at=expires_at,
    )


def format_time(moment: datetime) -> str:
    """Return a time as SAS and keys spell it, to the second below."""
    return moment.astimezone(UTC).strftime(_TIME)


def _key_info(start: datetime, end: datetime) -> bytes:
    # Only times stand in it, which need no escaping.
    return (
        '<?xml version="1.0" encoding="utf-8"?>'
        f"<KeyInfo><Start>{format_time(start)}</Start><Expiry>{format_time(end)}</Expiry></KeyInfo>"
    ).encode()


def _text(root: Element, name: str) -> str:
    text = root.findtext(name) or ""
    if _FIELD.fullmatch(text) is None:
        raise _not_a_key()
    return text


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    return moment.astimezone(UTC)


def _not_a_key() -> Unavailable:
    return Unavailable("Azure answered with something that is not a key")
