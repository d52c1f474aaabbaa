"""Who the gateway itself is in one storage: what botocore signs with, refreshed ahead of its expiry."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import Any, Final

from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import Credentials, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from vendors.boto_options import (
    AnyIdentity,
    AssumeRoleOptions,
    ChainOptions,
    KeysOptions,
    ProfileOptions,
    WebIdentityOptions,
)
from vendors.boto_session import (
    KeysCredentials,
    ProfileCredentials,
    chain_credentials,
    chain_session,
    end_of,
    open_session,
)
from vendors.sts import Failures, is_refusal, is_too_long, translate

# What every role gives, and all that AWS gives to whoever is a role's session already.
_OWN_SESSION: Final = timedelta(hours=1)
_LONGEST_SESSION: Final = timedelta(hours=12)
_ANY_REGION: Final = "us-east-1"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotoEndpoint:
    """Where the storage's services are; empty: where the SDK says that they are in that region."""

    region: str = ""
    sts: str = ""
    s3: str = ""
    iam: str = ""
    path_style: bool = True
    dual_stack: bool = False
    # The ARN of the access point through which the bucket is reached.
    access_point: str = ""
    ca_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSession:
    """Keys of the gateway's own, and their end."""

    keys: Keys
    # None where their provider names none.
    ends_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role:
    """A role that the gateway works as, and what asks for a session of it."""

    arn: str
    ask: Callable[[timedelta], Any]
    longest: timedelta = _LONGEST_SESSION


class BotoIdentity:
    """One for each storage, for its reader, its issuer and whatever else acts there.

    Its methods may read files and call STS: they belong into threads. The environment, the machine's role and
    the files of the home directory are looked at only where the options name them.
    """

    def __init__(self, options: AnyIdentity, endpoint: BotoEndpoint) -> None:
        self._options = options
        self._endpoint = endpoint
        self._lock = RLock()
        self._session: Any = None
        self._minting: _Role | None = None

    @property
    def is_temporary(self) -> bool:
        return self._options.is_temporary

    @property
    def is_role(self) -> bool:
        return self._options.is_role

    @property
    def is_found(self) -> bool:
        """Tell whether it is whatever the surroundings give, which they give to other programs too."""
        return isinstance(self._options, ChainOptions) and self._options.assume_role is None

    def keys(self) -> Keys:
        """Return keys that are good for some minutes at least, where their provider gives that."""
        credentials = self._signing().get_credentials()
        if credentials is None:
            raise NoCredentialsError
        return _frozen(credentials)

    def new_session(self, life: timedelta) -> OwnSession:
        """Return keys that were got just now, to last so long where their provider gives that."""
        role = self._minted_role()
        if role is not None:
            answer = _ask(role, life)
            return OwnSession(keys=_keys(answer), ends_at=answer["Expiration"].astimezone(UTC))
        credentials = self._found()
        # In this order: some are not there before they are asked for.
        return OwnSession(keys=_frozen(credentials), ends_at=end_of(credentials))

    def has_end(self) -> bool:
        """Tell whether the keys end by themselves, as far as their provider says."""
        if self.is_role:
            return True
        credentials = self._signing().get_credentials()
        if isinstance(credentials, ProfileCredentials):
            credentials = credentials.current()
        if credentials is None:
            raise NoCredentialsError
        # In this order: some are not there before they are asked for.
        _frozen(credentials)
        return end_of(credentials) is not None

    def key_id(self) -> str:
        """Return the access key that requests are signed with."""
        return self.keys().access_key_id

    def region(self) -> str:
        """Return the region that was configured, or else the one that the SDK finds."""
        return self._endpoint.region or self._signing().get_config_variable("region") or _ANY_REGION

    def sts(self) -> Any:
        return self._client(self._signing(), "sts", self._endpoint.sts)

    def iam(self) -> Any:
        return self._client(self._signing(), "iam", self._endpoint.iam)

    def s3(self, keys: Keys) -> Any:
        """Return a client that acts with these keys, its own or others."""
        given = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token or None)
        return self._client(open_session(given), "s3", self._endpoint.s3)

    def _signing(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = self._open()
            return self._session

    def _open(self) -> Any:
        role = self._role()
        return self._base() if role is None else open_session(_refreshing(role))

    def _base(self) -> Any:
        """Return the identity without the role that it may assume."""
        options = self._options
        if isinstance(options, KeysOptions):
            return open_session(KeysCredentials(options))
        if isinstance(options, ProfileOptions):
            return open_session(ProfileCredentials(options))
        if isinstance(options, WebIdentityOptions):
            return open_session(_refreshing(self._web_identity(options)))
        return chain_session()

    def _found(self) -> Any:
        """Return the credentials of an identity that assumes no role, looked for anew."""
        options = self._options
        if isinstance(options, KeysOptions):
            return KeysCredentials(options)
        if isinstance(options, ProfileOptions):
            return ProfileCredentials(options).load()
        return chain_credentials()

    def _minted_role(self) -> _Role | None:
        with self._lock:
            if self._minting is None:
                self._minting = self._role()
            return self._minting

    def _role(self) -> _Role | None:
        options = self._options
        if options.assume_role is not None:
            return self._assumed_role(self._base(), options.assume_role)
        return self._web_identity(options) if isinstance(options, WebIdentityOptions) else None

    def _web_identity(self, options: WebIdentityOptions) -> _Role:
        sts = self._client(open_session(None), "sts", self._endpoint.sts, signature_version=UNSIGNED)

        def ask(life: timedelta) -> Any:
            # Kubernetes replaces the token while we run.
            token = Path(options.token_file).read_text(encoding="utf-8").strip()
            return sts.assume_role_with_web_identity(
                RoleArn=options.role_arn,
                RoleSessionName=options.session_name,
                WebIdentityToken=token,
                DurationSeconds=int(life.total_seconds()),
            )

        return _Role(arn=options.role_arn, ask=ask)

    def _assumed_role(self, session: Any, options: AssumeRoleOptions) -> _Role:
        sts = self._client(session, "sts", self._endpoint.sts)
        asked = {"RoleArn": options.arn, "RoleSessionName": options.session_name}
        if options.external_id:
            asked["ExternalId"] = options.external_id
        return _Role(
            arn=options.arn,
            ask=lambda life: sts.assume_role(**asked, DurationSeconds=int(life.total_seconds())),
            longest=_OWN_SESSION if isinstance(self._options, WebIdentityOptions) else _LONGEST_SESSION,
        )

    def _client(self, session: Any, service: str, endpoint: str, *, signature_version: Any = None) -> Any:
        region = self._endpoint.region or session.get_config_variable("region") or _ANY_REGION
        config = Config(
            connect_timeout=2,
            read_timeout=5,
            retries={"total_max_attempts": 2, "mode": "standard"},
            max_pool_connections=32,
            signature_version=signature_version,
            # What a store requires is for that store to say: some take no role.
            parameter_validation=False,
            # Only the storage's entry says where its keys are sent.
            ignore_configured_endpoint_urls=True,
            s3={
                "addressing_style": "path" if self._endpoint.path_style else "virtual",
                "use_dualstack_endpoint": self._endpoint.dual_stack,
            },
        )
        return session.create_client(
            service,
            region_name=region,
            endpoint_url=endpoint or None,
            verify=self._endpoint.ca_file or None,
            config=config,
        )


def _ask(role: _Role, life: timedelta) -> Any:
    """Return a session of that life; of an hour where the role, or who asks for it, gets no more."""
    wanted = min(max(life, _OWN_SESSION), role.longest)
    try:
        return role.ask(wanted)["Credentials"]
    except ClientError as exc:
        if wanted <= _OWN_SESSION or not is_too_long(exc):
            raise
    return role.ask(_OWN_SESSION)["Credentials"]


def _refreshing(role: _Role) -> Any:
    """Return credentials that botocore asks for anew a quarter of an hour before they expire."""
    failures = Failures(log)

    def fetch() -> dict[str, str]:
        try:
            found = _metadata(role.ask(_OWN_SESSION)["Credentials"])
        except (ClientError, BotoCoreError, OSError, KeyError) as exc:
            code, error = translate(exc)
            hint = "; check options.identity" if is_refusal(exc) else ""
            failures.tell(f"the gateway got no session of {role.arn} for itself: {code}{hint}", code)
            # Not from it: botocore writes into its log what a refresh has raised, and STS repeats our token.
            raise error from None
        failures.end()
        return found

    return DeferredRefreshableCredentials(fetch, "assume-role")


def _frozen(credentials: Any) -> Keys:
    frozen = credentials.get_frozen_credentials()
    return Keys(
        access_key_id=frozen.access_key,
        secret_access_key=frozen.secret_key,
        session_token=frozen.token or "",
    )


def _keys(credentials: Mapping[str, Any]) -> Keys:
    return Keys(
        access_key_id=credentials["AccessKeyId"],
        secret_access_key=credentials["SecretAccessKey"],
        session_token=credentials["SessionToken"],
    )


def _metadata(credentials: Mapping[str, Any]) -> dict[str, str]:
    return {
        "access_key": credentials["AccessKeyId"],
        "secret_key": credentials["SecretAccessKey"],
        "token": credentials["SessionToken"],
        "expiry_time": credentials["Expiration"].isoformat(),
    }
