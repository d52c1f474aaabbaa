"""Verifies AWS Signature Version 4 as S3 does: in a header, or in the parameters of a presigned URL."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote, unquote

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
_MOST_SKEW = timedelta(minutes=15)
_LONGEST_URL = 604_800
_HEADER = re.compile(
    rf"{ALGORITHM} Credential=([^, ]+), ?SignedHeaders=([^, ]+), ?Signature=([0-9a-f]{{64}})"
)


class BadSignature(Exception):
    """A request that is not signed as it must be, by the code and status that say so."""

    def __init__(self, code: str, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A request by its own text, and what its signature says about itself."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body_hash: str
    access_key_id: str
    scope: tuple[str, ...]
    signed_headers: tuple[str, ...]
    signature: str = field(repr=False)
    date: str
    expires: int | None = None
    session_token: str | None = field(default=None, repr=False)

    def check(self, secret: str, now: datetime) -> None:
        """Refuse the request unless it was signed with this secret, and lately."""
        self._check_time(now)
        key = f"AWS4{secret}".encode()
        for part in self.scope:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        digest = hashlib.sha256(self._canonical().encode()).hexdigest()
        text = "\n".join([ALGORITHM, self.date, "/".join(self.scope), digest])
        if not hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), self.signature):
            raise BadSignature("SignatureDoesNotMatch", "the signature does not match")

    def _check_time(self, now: datetime) -> None:
        signed_at = datetime.strptime(self.date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if self.expires is not None:
            if not signed_at - _MOST_SKEW <= now < signed_at + timedelta(seconds=self.expires):
                raise BadSignature("ExpiredRequest", "the URL is over, or not valid yet", 400)
        elif abs(now - signed_at) > _MOST_SKEW:
            raise BadSignature("RequestTimeTooSkewed", "the request was signed long ago")

    def _canonical(self) -> str:
        pairs = sorted(
            (_quote(name), _quote(value)) for name, value in self.query if name != "X-Amz-Signature"
        )
        headers = [f"{name}:{' '.join(self.headers[name].split())}\n" for name in self.signed_headers]
        return "\n".join(
            [
                self.method,
                quote(self.path, safe="/-._~"),
                "&".join(f"{name}={value}" for name, value in pairs),
                "".join(headers),
                ";".join(self.signed_headers),
                self.body_hash,
            ]
        )


def read_signature(
    method: str, raw_path: str, raw_query: str, headers: Mapping[str, str], body: bytes
) -> SignedRequest:
    """Return what a request says of its signature, or refuse a request that has none."""
    lower = {name.lower(): value for name, value in headers.items()}
    query = tuple(parse_qsl(raw_query, keep_blank_values=True, errors="strict"))
    names = [name for name, _ in query]
    if len(set(names)) != len(names):
        raise BadSignature("InvalidArgument", "a parameter is there twice", 400)
    by_query = "X-Amz-Signature" in names
    if by_query == ("authorization" in lower):
        raise BadSignature("Unauthorized", "a request is signed in a header or in its URL", 401)
    given = _from_query(dict(query)) if by_query else _from_header(lower, body)
    scope = given.credential.split("/")
    if len(scope) != 5 or scope[1] != given.date[:8] or scope[3:] != ["s3", "aws4_request"]:
        raise BadSignature("Unauthorized", "the scope of the signature is not S3's", 401)
    _check_headers(given, lower)
    return SignedRequest(
        method=method,
        path=unquote(raw_path, errors="strict"),
        query=query,
        headers=lower,
        body_hash=given.body_hash,
        access_key_id=scope[0],
        scope=tuple(scope[1:]),
        signed_headers=given.signed_headers,
        signature=given.signature,
        date=given.date,
        expires=given.expires,
        session_token=given.session_token,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    credential: str
    signed_headers: tuple[str, ...]
    signature: str
    date: str
    body_hash: str
    expires: int | None = None
    session_token: str | None


def _from_query(query: Mapping[str, str]) -> _Given:
    try:
        expires = int(query["X-Amz-Expires"])
        given = _Given(
            credential=query["X-Amz-Credential"],
            signed_headers=tuple(query["X-Amz-SignedHeaders"].split(";")),
            signature=query["X-Amz-Signature"],
            date=_date(query["X-Amz-Date"]),
            body_hash=UNSIGNED,
            expires=expires,
            session_token=query.get("X-Amz-Security-Token"),
        )
    except (KeyError, ValueError):
        raise BadSignature("Unauthorized", "a presigned URL without its parameters", 401) from None
    if query.get("X-Amz-Algorithm") != ALGORITHM or not 1 <= expires <= _LONGEST_URL:
        raise BadSignature("InvalidArgument", "another algorithm, or more than seven days", 400)
    return given


def _from_header(headers: Mapping[str, str], body: bytes) -> _Given:
    found = _HEADER.fullmatch(headers["authorization"])
    if found is None:
        raise BadSignature("Unauthorized", "not an authorization by signature", 401)
    stated = headers.get("x-amz-content-sha256", "")
    if stated not in (UNSIGNED, hashlib.sha256(body).hexdigest()):
        raise BadSignature("SignatureDoesNotMatch", "the content is not what was signed")
    credential, names, signature = found.groups()
    return _Given(
        credential=credential,
        signed_headers=tuple(names.split(";")),
        signature=signature,
        date=_date(headers.get("x-amz-date", "")),
        body_hash=stated,
        session_token=headers.get("x-amz-security-token"),
    )


def _check_headers(given: _Given, headers: Mapping[str, str]) -> None:
    needed = {"host"}
    if given.expires is None:
        # All of S3's own headers are signed, the session token among them.
        needed |= {name for name in headers if name.startswith("x-amz-")}
    if not needed <= set(given.signed_headers) <= set(headers):
        raise BadSignature("Unauthorized", "a header that must be signed is not, or is not there", 401)
    if list(given.signed_headers) != sorted(given.signed_headers):
        raise BadSignature("Unauthorized", "signed headers are not in order", 401)


def _date(text: str) -> str:
    if re.fullmatch(r"\d{8}T\d{6}Z", text) is None:
        raise BadSignature("Unauthorized", "not the date of a signature", 401)
    return text


def _quote(text: str) -> str:
    return quote(text, safe="-._~")
