"""Issues user delegation SAS for the directories of one container."""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from gateway.domain.credential import AzureUserDelegationSas, Credential
from gateway.domain.scope import Scope
from gateway.errors import Unavailable, Unsupported
from gateway.ports import StorageSettings
from vendors.azure.account import Account
from vendors.azure.config import AzureOptions
from vendors.azure.delegation_key import DelegationKey
from vendors.azure.limits import opens_container, scope_faults
from vendors.azure.sas import SasResource, sign_sas

log = logging.getLogger(__name__)

GetKey = Callable[[timedelta], Awaitable[DelegationKey]]


class AzureIssuer:
    def __init__(
        self, settings: StorageSettings, options: AzureOptions, account: Account, get_key: GetKey
    ) -> None:
        self.names_recipients = options.correlation_id
        self._storage = settings.name
        self._prefix = settings.prefix
        self._clock = settings.clock
        self._options = options
        self._account = account
        self._get_key = get_key

    async def issue(self, scope: Scope) -> Credential:
        if faults := scope_faults(self._options, scope.location):
            log.error("storage %s: %s", self._storage, faults[0])
            raise Unsupported("this table's storage cannot open a directory by itself")
        if not self._prefix.covers(scope.location):
            raise Unsupported("the location does not lie in this storage")
        key = await self._get_key(scope.life)
        # After the key: getting one may take a while, and its start must not lie ahead of the SAS.
        now = self._clock()
        # Here the store enforces what we write, so this is its own expiration; it never outlives the key.
        expires_at = _to_the_second(min(now + scope.life, key.expires_at))
        if expires_at <= now:
            raise Unavailable("the storage's key has expired; try again later")
        token = sign_sas(
            self._resource(scope),
            key,
            starts_at=max(now - self._options.clock_skew, key.starts_at),
            expires_at=expires_at,
            protocol=self._account.protocol,
            correlation_id=correlation_id(scope.recipient) if self.names_recipients else "",
        )
        return Credential(
            id=_name(token), secret=AzureUserDelegationSas(sas_token=token), expires_at=expires_at
        )

    def _resource(self, scope: Scope) -> SasResource:
        whole = opens_container(self._options, scope.location)
        return SasResource(
            account=self._account.name,
            container=self._account.container,
            path="" if whole else scope.location.path,
        )


def correlation_id(recipient: str) -> str:
    """Return what Azure's logs show for a recipient: the same wherever and whenever it is computed."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:sluice:recipient:{recipient}")) if recipient else ""


def _name(token: str) -> str:
    return f"sas-{hashlib.sha256(token.encode()).hexdigest()[:32]}"


def _to_the_second(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)
