"""Sessions of botocore's that know one source of credentials and look for no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES
from botocore.credentials import (
    CredentialResolver,
    ReadOnlyCredentials,
    RefreshableCredentials,
    create_credential_resolver,
)
from botocore.exceptions import NoCredentialsError
from botocore.session import Session

from vendors.boto_options import KeysOptions, ProfileOptions

_HOME_FILES: Final = {"credentials_file": "~/.aws/credentials", "config_file": "~/.aws/config"}
# A profile that holds nothing must not end with what the machine happens to be.
AMBIENT: Final = frozenset({"env", "ec2-credentials-file", "boto-config", "container-role", "iam-role"})


def chain_session() -> Any:
    """Return a session that takes whatever the SDK finds."""
    return Session()


def chain_credentials() -> Any:
    """Return what the SDK finds now."""
    session = chain_session()
    machine = session.get_component("credential_provider").get_provider("iam-role")
    # Of a machine's session that is nearly over the SDK says that it ends later, to go on using it.
    machine._role_fetcher._evaluate_expiration = lambda _: None  # noqa: SLF001
    credentials = session.get_credentials()
    if credentials is None:
        raise NoCredentialsError
    return credentials


def end_of(credentials: Any) -> datetime | None:
    """Return when credentials that were just got will end; None where their provider names no end."""
    if not isinstance(credentials, RefreshableCredentials):
        return None
    ends_at: datetime | None = credentials._expiry_time  # noqa: SLF001
    return ends_at.astimezone(UTC) if ends_at else None


def open_session(credentials: Any) -> Any:
    """Return a session with these credentials, which takes nothing from environment and home directory."""
    session = _isolated()
    session.register_component("credential_provider", CredentialResolver([_OneSource(credentials)]))
    return session


class KeysCredentials:
    """Reads its secrets each time: whoever replaces their files need not tell us."""

    method = "keys"

    def __init__(self, options: KeysOptions) -> None:
        self._options = options

    def get_frozen_credentials(self) -> Any:
        options = self._options
        named = options.access_key_id
        return ReadOnlyCredentials(
            named if isinstance(named, str) else named.read(),
            options.secret_access_key.read(),
            options.session_token.read() if options.session_token else None,
        )

    def get_deferred_property(self, _: str) -> Callable[[], None]:
        """Answer what botocore asks of its own classes: no account is known here."""
        return lambda: None


class ProfileCredentials:
    """Loads its profile again when a file that it comes from has changed."""

    method = "profile"

    def __init__(self, options: ProfileOptions) -> None:
        self._options = options
        self._files = {"credentials_file": options.file} if options.file else _HOME_FILES
        self._lock = Lock()
        self._loaded: tuple[object, Any] = (None, None)

    def get_frozen_credentials(self) -> Any:
        return self.current().get_frozen_credentials()

    def current(self) -> Any:
        """Return the credentials of the profile, loaded again only if it may be another."""
        with self._lock:
            stamp = [_stamp(Path(path).expanduser()) for path in self._files.values()]
            if self._loaded[0] != stamp:
                self._loaded = (stamp, self.load())
            return self._loaded[1]

    def load(self) -> Any:
        """Return the credentials of the profile as it is now."""
        resolver = create_credential_resolver(_isolated(profile=self._options.name, **self._files))
        for name in AMBIENT & {provider.METHOD for provider in resolver.providers}:
            resolver.remove(name)
        credentials = resolver.load_credentials()
        if credentials is None:
            raise NoCredentialsError
        return credentials

    def get_deferred_property(self, _: str) -> Callable[[], None]:
        """Answer what botocore asks of its own classes: no account is known here."""
        return lambda: None


class _OneSource:
    """Is a provider of botocore's that has one answer."""

    METHOD = "sluice"
    CANONICAL_NAME = None

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def load(self) -> Any:
        return self._credentials


def _isolated(profile: str | None = None, **files: str) -> Any:
    known = BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
    variables = {name: (None, None, default, convert) for name, (_, _, default, convert) in known}
    for name in _HOME_FILES:
        variables[name] = (None, None, files.get(name, os.devnull), None)
    return Session(session_vars=variables, profile=profile)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
