"""Who the gateway itself is in one storage: what botocore signs with, refreshed ahead of its expiry."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final

from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import Credentials, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from vendors.boto_options import (
    AnyIdentity,
    AssumeRoleOptions,
    KeysOptions,
    ProfileOptions,
    WebIdentityOptions,
)
from vendors.boto_session import KeysCredentials, ProfileCredentials, chain_session, open_session
from vendors.sts import Failures, is_refusal, translate

_OWN_SESSION: Final = int(timedelta(hours=1).total_seconds())
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
    ca_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False, default="")


class BotoIdentity:
    """One for each storage, for its reader, its issuer and whatever else acts there.

    Its methods may read files and call STS: they belong into threads. The environment, the machine's role and
    the files of the home directory are looked at only where the options name them.
    """

    def __init__(self, options: AnyIdentity, endpoint: BotoEndpoint) -> None:
        self._options = options
        self._endpoint = endpoint
        self._lock = Lock()
        self._session: Any = None

    def keys(self) -> Keys:
        """Return keys that are good for some minutes at least, where their provider gives that."""
        credentials = self._signing().get_credentials()
        if credentials is None:
            raise NoCredentialsError
        frozen = credentials.get_frozen_credentials()
        return Keys(
            access_key_id=frozen.access_key,
            secret_access_key=frozen.secret_key,
            session_token=frozen.token or "",
        )

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
        session = self._base(self._options)
        if self._options.assume_role is None:
            return session
        return open_session(self._assumed_role(session, self._options.assume_role))

    def _base(self, options: AnyIdentity) -> Any:
        if isinstance(options, KeysOptions):
            return open_session(KeysCredentials(options))
        if isinstance(options, ProfileOptions):
            return open_session(ProfileCredentials(options))
        if isinstance(options, WebIdentityOptions):
            return open_session(self._web_identity(options))
        return chain_session()

    def _web_identity(self, options: WebIdentityOptions) -> Any:
        sts = self._client(open_session(None), "sts", self._endpoint.sts, signature_version=UNSIGNED)

        def ask() -> Any:
            # Kubernetes replaces the token while we run.
            token = Path(options.token_file).read_text(encoding="utf-8").strip()
            return sts.assume_role_with_web_identity(
                RoleArn=options.role_arn,
                RoleSessionName=options.session_name,
                WebIdentityToken=token,
                DurationSeconds=_OWN_SESSION,
            )

        return _refreshing(ask, options.role_arn)

    def _assumed_role(self, session: Any, options: AssumeRoleOptions) -> Any:
        sts = self._client(session, "sts", self._endpoint.sts)
        asked = {
            "RoleArn": options.arn,
            "RoleSessionName": options.session_name,
            "DurationSeconds": _OWN_SESSION,
        }
        if options.external_id:
            asked["ExternalId"] = options.external_id
        return _refreshing(lambda: sts.assume_role(**asked), options.arn)

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
            s3={"addressing_style": "path" if self._endpoint.path_style else "virtual"},
        )
        return session.create_client(
            service,
            region_name=region,
            endpoint_url=endpoint or None,
            verify=self._endpoint.ca_file or None,
            config=config,
        )


def _refreshing(ask: Callable[[], Any], role_arn: str) -> Any:
    """Return credentials that botocore asks for anew a quarter of an hour before they expire."""
    failures = Failures(log)

    def fetch() -> dict[str, str]:
        try:
            found = _metadata(ask()["Credentials"])
        except (ClientError, BotoCoreError, OSError, KeyError) as exc:
            code, error = translate(exc)
            hint = "; check options.identity" if is_refusal(exc) else ""
            failures.tell(f"the gateway got no session of {role_arn} for itself: {code}{hint}", code)
            # Not from it: botocore writes into its log what a refresh has raised, and STS repeats our token.
            raise error from None
        failures.end()
        return found

    return DeferredRefreshableCredentials(fetch, "assume-role")


def _metadata(credentials: Mapping[str, Any]) -> dict[str, str]:
    return {
        "access_key": credentials["AccessKeyId"],
        "secret_key": credentials["SecretAccessKey"],
        "token": credentials["SessionToken"],
        "expiry_time": credentials["Expiration"].isoformat(),
    }
