"""Asks an STS for sessions of a role that are scoped by a policy, and says what went wrong in our words."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.errors import GatewayError, Unavailable, Unsupported
from gateway.ports import StorageMetrics
from vendors.http import retry_after
from vendors.options import why_unreadable

RECIPIENT_TAG: Final = "sluice:recipient"

_SHORTEST: Final = 2
_LONGEST_NAME: Final = 64
_LONGEST_TAG: Final = 256
_NOT_IN_NAME: Final = re.compile(r"[^\w+=,.@-]", re.ASCII)
_NOT_IN_TAG: Final = re.compile(r"[^\w .:/=+@-]")
_DIGEST: Final = 12
# What a shortened name ends with: a recipient of such a name is shortened too, so that the two differ.
_SHORTENED: Final = re.compile(rf"-[0-9a-f]{{{_DIGEST}}}")

_THROTTLING: Final = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "PriorRequestNotComplete",
        "SlowDown",
    }
)
_TOO_MANY: Final = 429
_REFUSED: Final = frozenset({401, 403})
# Some come with 400 instead of 403.
_IDENTITY: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidIdentityToken",
        "InvalidClientTokenId",
        "InvalidTokenId",
    }
)
_NO_IDENTITY: Final = "the storage does not accept the gateway's own identity; ask the provider of the share"
_POLICY: Final = frozenset(
    {
        "PackedPolicyTooLarge",
        "PackedPolicyTooLargeException",
        "MalformedPolicyDocument",
        "MalformedPolicyDocumentException",
    }
)
_DURATION: Final = re.compile(r"DurationSeconds exceeds|MaxSessionDuration", re.IGNORECASE)
_FULL: Final = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    # Empty where a store needs no role.
    role_arn: str = ""
    external_id: str = ""
    name: str
    policy: str
    life: timedelta
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at: datetime

    def to_credential(self, region: str, endpoint: str) -> Credential:
        """Return the session as what a recipient is given, with the place where it is good."""
        secret = AwsTempCredentials(
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            session_token=self.session_token,
            region=region,
            endpoint=endpoint,
        )
        return Credential(id=self.access_key_id, secret=secret, expires_at=self.expires_at)


class Sts:
    """Calls a botocore client in threads; it brings its own time-outs and number of attempts."""

    def __init__(
        self,
        open_client: Callable[[], Any],
        threads: Executor,
        *,
        storage: str,
        metrics: StorageMetrics | None = None,
        key_id: Callable[[], str] = str,
    ) -> None:
        self._open_client = open_client
        self._threads = threads
        self._storage = storage
        self._metrics = metrics
        # The access key that requests are signed with, for the log.
        self._key_id = key_id
        self._failures = Failures(log)
        self._client: Any = None
        self._lock = Lock()

    async def assume_role(self, request: SessionRequest) -> Session:
        """Return a session; raise ``Unsupported`` for what STS will never give, else ``Unavailable``."""
        loop = asyncio.get_running_loop()
        try:
            waiting = loop.run_in_executor(self._threads, self._assume_role, request)
        except RuntimeError:
            # A reload has closed the storage while somebody waited to ask it.
            raise Unavailable("the storage is being replaced; try again") from None
        try:
            answer = await waiting
            session = _session(answer["Credentials"])
        except (ClientError, BotoCoreError, OSError, KeyError, ValueError) as exc:
            code, error = translate(exc)
            # The recipient learns nothing of our identity; the operator needs to know what was refused.
            words = f"STS gave no session: {code}"
            if is_refusal(exc):
                words = await loop.run_in_executor(self._threads, self._refused, request, code)
            self._failures.tell(f"storage {self._storage}: {words}", code)
            # Not from it: STS repeats a request that was signed badly, with our session token.
            raise error from None
        self._failures.end()
        self._observe(answer.get("PackedPolicySize"))
        return session

    def _assume_role(self, request: SessionRequest) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._open_client()
        asked: dict[str, Any] = {
            "RoleSessionName": request.name,
            "Policy": request.policy,
            "DurationSeconds": int(request.life.total_seconds()),
        }
        if request.role_arn:
            asked["RoleArn"] = request.role_arn
        if request.external_id:
            asked["ExternalId"] = request.external_id
        if request.tags:
            asked["Tags"] = [{"Key": key, "Value": value} for key, value in request.tags.items()]
        return self._client.assume_role(**asked)

    def _observe(self, percent: int | None) -> None:
        if percent is None:
            return
        if self._metrics is not None:
            self._metrics.observe_policy_size(self._storage, percent)
        if percent > _FULL:
            raise Unsupported("the table's path is too long for a session policy of this storage")

    def _refused(self, request: SessionRequest, code: str) -> str:
        """Return which role was refused to which key, neither of which is secret, and what to look at."""
        try:
            key_id = self._key_id()
        except (BotoCoreError, ClientError, GatewayError, OSError, ValueError):
            key_id = ""
        role = f" of {request.role_arn}" if request.role_arn else ""
        key = f" to the access key {key_id}" if key_id else ""
        return f"STS gave no session{role}{key}: {code}; check options.identity and options.role"


class Failures:
    """Tells of a failure once, until there is another one or it goes well again."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._last = ""

    def tell(self, message: str, code: str) -> None:
        if code != self._last:
            self._log.warning("%s", message)
        self._last = code

    def end(self) -> None:
        self._last = ""


def is_refusal(exc: Exception) -> bool:
    """Tell whether the gateway's own identity, or what it may do, was refused."""
    if not isinstance(exc, ClientError):
        return False
    status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status in _REFUSED or exc.response.get("Error", {}).get("Code") in _IDENTITY


def is_too_long(exc: ClientError) -> bool:
    """Tell whether sessions of the role, or of whoever asked for one, do not live that long."""
    return bool(_DURATION.search(str(exc.response.get("Error", {}).get("Message", ""))))


def translate(exc: Exception) -> tuple[str, GatewayError]:
    """Return the code of what botocore raised, for a log, and the error that says it to a recipient."""
    if isinstance(exc, ClientError):
        code = str(exc.response.get("Error", {}).get("Code", ""))
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
        return f"{status} {code}".strip(), _refusal(code, exc.response)
    if isinstance(exc, (HTTPClientError, BotoConnectionError)):
        return type(exc).__name__, Unavailable("the storage's token service does not answer; try again later")
    if isinstance(exc, (BotoCoreError, OSError)):
        # Keys, a profile or a token that cannot be read.
        unreadable = why_unreadable(exc) if isinstance(exc, OSError) else ""
        return unreadable or type(exc).__name__, Unavailable(_NO_IDENTITY)
    return type(exc).__name__, Unavailable("the storage's token service gave no credential; try again later")


def session_name(recipient: str) -> str:
    """Return the recipient's name as a role's session may be called; no two recipients share one."""
    return _fit(recipient, _NOT_IN_NAME, _LONGEST_NAME)


def recipient_tags(recipient: str) -> Mapping[str, str]:
    """Return the session tags that name a recipient."""
    return {RECIPIENT_TAG: _fit(recipient, _NOT_IN_TAG, _LONGEST_TAG)}


def _fit(text: str, forbidden: re.Pattern[str], longest: int) -> str:
    kept = forbidden.sub("_", text)
    if kept == text and _SHORTEST <= len(text) <= longest and not _SHORTENED.fullmatch(text[-_DIGEST - 1 :]):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{kept[: longest - _DIGEST - 1]}-{digest}"


def _session(credentials: Mapping[str, Any]) -> Session:
    expires_at = credentials["Expiration"]
    if not isinstance(expires_at, datetime) or expires_at.tzinfo is None:
        raise ValueError("an expiration without a time zone")
    return Session(
        access_key_id=credentials["AccessKeyId"],
        secret_access_key=credentials["SecretAccessKey"],
        session_token=credentials["SessionToken"],
        expires_at=expires_at.astimezone(UTC),
    )


def _refusal(code: str, response: Mapping[str, Any]) -> GatewayError:
    meta = response.get("ResponseMetadata", {})
    status = meta.get("HTTPStatusCode")
    if code in _THROTTLING or status == _TOO_MANY:
        return _throttled(meta.get("HTTPHeaders", {}))
    if code in _POLICY:
        return Unsupported("the table's path cannot be expressed in a session policy of this storage")
    if _DURATION.search(str(response.get("Error", {}).get("Message", ""))):
        return Unsupported(
            "credentials of this storage may not live that long: set its credentialLife to what its role "
            "allows (MaxSessionDuration, and one hour where the gateway's own identity is an assumed role)"
        )
    if status in _REFUSED or code in _IDENTITY:
        return Unavailable(_NO_IDENTITY)
    return Unavailable("the storage's token service gave no credential; try again later")


def _throttled(headers: Mapping[str, str]) -> Unavailable:
    wait = retry_after(headers)
    return Unavailable("the storage's token service is busy; try again later", retry_after=wait)
