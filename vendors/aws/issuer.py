"""Issues sessions of a role, each scoped to a table's directory."""

from __future__ import annotations

from gateway.domain.credential import Credential
from gateway.domain.scope import Scope
from vendors.aws.config import AwsOptions, RoleOptions, check_life
from vendors.iam_policy import session_policy
from vendors.sts import SessionRequest, Sts, recipient_tags, session_name


class AwsIssuer:
    """Names the recipient in the session's name, and in its tags unless they are switched off."""

    names_recipients = True

    def __init__(self, options: AwsOptions, role: RoleOptions, sts: Sts) -> None:
        self._options = options
        self._role = role
        self._sts = sts

    async def issue(self, scope: Scope) -> Credential:
        check_life(scope.life, self._options)
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
        return session.to_credential(self._options.region or "", self._options.endpoint or "")
