"""Issues sessions of a role, each scoped to a table's directory."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.scope import Scope
from gateway.errors import Unsupported
from vendors.aws.config import AwsOptions, RoleOptions
from vendors.iam_policy import session_policy
from vendors.sts import SessionRequest, Sts, recipient_tags, session_name

SHORTEST: Final = timedelta(minutes=15)
LONGEST: Final = timedelta(hours=12)
# What AWS gives to an identity that is a role's session itself.
LONGEST_CHAINED: Final = timedelta(hours=1)


class AwsIssuer:
    """Names the recipient in the session's name, and in its tags unless they are switched off."""

    names_recipients = True

    def __init__(self, options: AwsOptions, role: RoleOptions, sts: Sts, *, is_role: bool) -> None:
        self._options = options
        self._role = role
        self._sts = sts
        # Whether the gateway's own identity is a role's session itself.
        self._longest = LONGEST_CHAINED if is_role else LONGEST

    async def issue(self, scope: Scope) -> Credential:
        self._check(scope.life)
        session = await self._sts.assume_role(
            SessionRequest(
                role_arn=self._role.arn,
                external_id=self._role.external_id or "",
                name=session_name(scope.recipient),
                policy=session_policy(scope.location, self._options.terms),
                life=scope.life,
                tags=recipient_tags(scope.recipient) if self._options.session_tags else {},
            )
        )
        secret = AwsTempCredentials(
            access_key_id=session.access_key_id,
            secret_access_key=session.secret_access_key,
            session_token=session.session_token,
            region=self._options.region or "",
            endpoint=self._options.endpoint or "",
        )
        return Credential(id=session.access_key_id, secret=secret, expires_at=session.expires_at)

    def _check(self, life: timedelta) -> None:
        if not SHORTEST <= life <= LONGEST:
            raise Unsupported("credentials on AWS live from 15 minutes to 12 hours: change credentialLife")
        if life > self._longest:
            raise Unsupported(
                "credentials of this storage live an hour at most, as the gateway's own identity is an "
                "assumed role: set credentialLife to 1h"
            )
