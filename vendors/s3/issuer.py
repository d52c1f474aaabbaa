"""Issues sessions of an S3-compatible store's token service, each scoped to a table's directory."""

from __future__ import annotations

from gateway.domain.credential import Credential
from gateway.domain.scope import Scope
from vendors.s3.config import S3Options, check_life, policy_for
from vendors.sts import SessionRequest, Sts, recipient_tags, session_name


class S3Issuer:
    """Names the recipient in the session's name."""

    names_recipients = True

    def __init__(self, options: S3Options, sts: Sts) -> None:
        self._options = options
        self._sts = sts

    async def issue(self, scope: Scope) -> Credential:
        options = self._options
        check_life(scope.life, options)
        session = await self._sts.assume_role(
            SessionRequest(
                role_arn=options.role.arn if options.role else "",
                external_id=(options.role.external_id or "") if options.role else "",
                name=session_name(scope.recipient),
                policy=policy_for(scope.location, options),
                life=scope.life,
                tags=recipient_tags(scope.recipient) if options.session_tags else {},
            )
        )
        return session.to_credential(options.region, options.endpoint)
