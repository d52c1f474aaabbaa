"""Everything that can go wrong, in the words of the gateway.

    GatewayError
    ├── InvalidArgument     the request says something that cannot be meant
    ├── Unauthenticated     nobody we know is asking
    ├── PermissionDenied    a known principal that policy has disabled
    ├── NotFound            there is no such thing, or none that was granted
    ├── Unsupported         a fair request that this table or storage cannot serve
    ├── Throttled           too many requests from this principal
    ├── Unavailable         a dependency does not answer; trying again may help
    ├── DeadlineExceeded    the caller's time ran out
    └── Internal            our fault

A message is written for a recipient: lower case, no full stop, names the thing, holds no secret and
no storage path that the recipient was not shown already.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar


class GatewayError(Exception):
    """Base of all errors that services raise; never raised itself."""

    default_code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, error_code: str | None = None, fault: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code or self.default_code
        # What the service that raises it knows besides, for itself: it crosses no channel.
        self.fault = fault


class InvalidArgument(GatewayError):
    default_code = "INVALID_PARAMETER_VALUE"


class Unauthenticated(GatewayError):
    default_code = "UNAUTHENTICATED"


class PermissionDenied(GatewayError):
    default_code = "PERMISSION_DENIED"


class NotFound(GatewayError):
    default_code = "RESOURCE_DOES_NOT_EXIST"


class Unsupported(GatewayError):
    default_code = "UNSUPPORTED_OPERATION"


class Throttled(GatewayError):
    """Carries how long to wait before the next attempt can succeed."""

    default_code = "RESOURCE_EXHAUSTED"

    def __init__(self, message: str, *, retry_after: timedelta = timedelta(seconds=1)) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(GatewayError):
    """Carries how long to wait where the dependency has asked to be called less often."""

    default_code = "TEMPORARILY_UNAVAILABLE"

    def __init__(
        self, message: str, *, error_code: str | None = None, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(message, error_code=error_code)
        self.retry_after = retry_after


class DeadlineExceeded(GatewayError):
    default_code = "DEADLINE_EXCEEDED"


class Internal(GatewayError):
    default_code = "INTERNAL_ERROR"


MALFORMED_REQUEST = "MALFORMED_REQUEST"
# Said to a platform service about itself, whoever it asks for.
SERVICE_REFUSED = "SERVICE_REFUSED"
