"""Who the gateway itself is at Google: access tokens of the identity that the settings name."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import google.auth
import google.auth.transport.requests
import requests
from google.auth import aws, compute_engine, identity_pool, impersonated_credentials
from google.auth.exceptions import GoogleAuthError
from google.oauth2 import service_account
from requests.adapters import HTTPAdapter

from gateway.errors import Unavailable
from gateway.ports import Clock
from vendors.gcp.config import (
    ChainOptions,
    GcpOptions,
    IdentityOptions,
    MetadataOptions,
    ServiceAccountOptions,
    WorkloadIdentityOptions,
)
from vendors.http import trusting
from vendors.options import why_unreadable
from vendors.renewal import Renewed

# The token exchange takes tokens of this scope only.
SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
# The longest life of an access token.
LONGEST: Final = timedelta(hours=1)
# A token that could not be refreshed is used until this long before its end.
_LAST_MINUTES: Final = timedelta(minutes=5)
_TIMEOUT: Final = 5.0
_AWS_SUBJECT: Final = "urn:ietf:params:aws:token-type:aws4_request"
_CODE: Final = re.compile(r"[a-z_]{1,40}")

# google-auth's transport: called with url, method, body and headers.
Transport = Callable[..., Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceToken:
    """An access token with all the rights of the identity: it never leaves the gateway."""

    value: str = field(repr=False)
    expires_at: datetime | None


class Identity:
    """Keeps a token for each life that is asked for."""

    def __init__(self, options: GcpOptions, transport: Transport, clock: Clock) -> None:
        self._options = options
        self._transport = transport
        self._clock = clock
        self._kept: dict[timedelta, Renewed[SourceToken]] = {}

    async def token(self, life: timedelta = LONGEST) -> SourceToken:
        """Return a token that has about as long to live as asked, where Google gives that much.

        What is made from it ends with it, so that one in its second half is of little use.
        """
        # Only an impersonation can be asked for a shorter life than an hour.
        asked = min(life, LONGEST) if self._options.identity.impersonate else LONGEST
        kept = self._kept.get(asked)
        if kept is None:
            kept = self._kept[asked] = Renewed(
                lambda _: self._fetch(asked),
                ahead=asked / 20,
                least=min(_LAST_MINUTES, asked / 2),
                clock=self._clock,
            )
        return await kept.get(asked * 9 / 10)

    async def _fetch(self, life: timedelta) -> SourceToken:
        started_at = self._clock()
        try:
            credentials = await asyncio.to_thread(_refreshed, self._options, life, self._transport)
        except (GoogleAuthError, OSError, ValueError) as exc:
            log.warning("the identity of a storage has no access token: %s", _reason(exc))
            raise Unavailable("the storage's own identity has no access at the moment") from None
        expires_at: datetime | None = credentials.expiry
        if expires_at is not None:
            # google-auth counts from when the answer was there; Google counted from before.
            taken = max(self._clock() - started_at, timedelta())
            # An impersonation names its end by Google's clock, and gives no more than was asked for.
            expires_at = min(expires_at.replace(tzinfo=UTC) - taken, started_at + life)
        return SourceToken(value=str(credentials.token), expires_at=expires_at)


@contextmanager
def open_transport(ca_file: str | None) -> Iterator[Transport]:
    """Open what google-auth calls Google with."""
    with requests.Session() as session:
        # Else a netrc file would replace the identity that the settings name.
        session.trust_env = False
        if ca_file is not None:
            session.mount("https://", _TrustingAdapter(trusting(ca_file)))
        yield partial(google.auth.transport.requests.Request(session), timeout=_TIMEOUT)


class _TrustingAdapter(HTTPAdapter):
    def __init__(self, trust: ssl.SSLContext) -> None:
        self._trust = trust
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=self._trust, **kwargs)


def _refreshed(options: GcpOptions, life: timedelta, transport: Transport) -> Any:
    # Built anew each time: a key file may have been replaced since.
    source = credentials_of(options.identity, transport)
    impersonate = options.identity.impersonate
    if impersonate is not None:
        impersonated: Any = impersonated_credentials.Credentials
        source = impersonated(
            source_credentials=source,
            target_principal=impersonate.service_account,
            target_scopes=list(SCOPES),
            delegates=impersonate.delegates or None,
            lifetime=int(life.total_seconds()),
            iam_endpoint_override=_iam_url(options, impersonate.service_account),
        )
    source.refresh(transport)
    return source


def _iam_url(options: GcpOptions, account: str) -> str | None:
    if options.iam_endpoint is None:
        return None
    return f"{options.iam_endpoint}/v1/projects/-/serviceAccounts/{account}:generateAccessToken"


def credentials_of(identity: IdentityOptions, transport: Any) -> Any:
    """Return google-auth's credentials of the identity itself, not refreshed yet. May read files, and ask."""
    match identity:
        case ServiceAccountOptions():
            from_key: Any = service_account.Credentials.from_service_account_info
            return from_key(_json_object(identity.read_key()), scopes=SCOPES)
        case WorkloadIdentityOptions():
            return _external_account(identity.config_file)
        case MetadataOptions():
            from_metadata: Any = compute_engine.Credentials
            account = identity.service_account or "default"
            return from_metadata(service_account_email=account, scopes=SCOPES)
        case ChainOptions():
            return google.auth.default(scopes=SCOPES, request=transport)[0]


def _external_account(file: str) -> Any:
    info = _json_object(Path(file).read_text(encoding="utf-8"))
    if info.get("type") != "external_account":
        raise ValueError("the workload identity's file is not one of an external account")
    kind = aws if info.get("subject_token_type") == _AWS_SUBJECT else identity_pool
    return kind.Credentials.from_info(info, scopes=SCOPES)


def _json_object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


def _reason(exc: Exception) -> str:
    """Return the kind of failure and Google's code for it: an exception's text may repeat a token."""
    if isinstance(exc, OSError) and (unreadable := why_unreadable(exc)):
        return unreadable
    answer = exc.args[1] if len(exc.args) > 1 else None
    code = answer.get("error") if isinstance(answer, dict) else None
    known = isinstance(code, str) and _CODE.fullmatch(code)
    return f"{type(exc).__name__} {code}" if known else type(exc).__name__
