"""What an obstore call failed of, told from the store's answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from obstore.exceptions import BaseError, UnauthenticatedError

# What obstore raises; the last for a key that it takes for none.
STORE_ERRORS: Final = (BaseError, OSError, ValueError)

# Everything below this line repeats the first part for developers.
_DEBUG: Final = "\n\nDebug source:"
# The answer follows; before it stands the path, in which anything may be written.
_ANSWER: Final = "Server returned non-2xx status code: "
_STATUS: Final = re.compile(r"[45]\d\d(?!\d)")
_CODE: Final = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>|\"reason\":\s*\"([A-Za-z]{1,60})\"")
# The store believes who is asking, and says no. Azure tells what a SAS lacks from what an account forbids.
_DENIALS: Final = frozenset(
    {
        "AccessDenied",
        "AllAccessDisabled",
        "AuthorizationFailure",
        "AuthorizationPermissionMismatch",
        "AuthorizationResourceTypeMismatch",
        "forbidden",
    }
)
_FORBIDDEN: Final = "403"
_MISSING: Final = "404"


class Failure(StrEnum):
    MISSING = "missing"
    DENIED = "denied"
    # The store does not believe the credential, does not answer, or answers with nonsense.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StoreError:
    failure: Failure
    # Status and code only: a store's answer to a bad signature repeats the session token.
    words: str


class StoreRefused(Exception):
    """Raised for a store's answer by what speaks to it without obstore."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(error.words)
        self.error = error


def read_error(exc: Exception) -> StoreError:
    """Judge what a call raised; what the store has not explained is a failure, never a denial."""
    if isinstance(exc, StoreRefused):
        return exc.error
    if isinstance(exc, (FileNotFoundError, ValueError)):
        return StoreError(Failure.MISSING, "not found")
    if not isinstance(exc, BaseError):
        return StoreError(Failure.FAILED, type(exc).__name__)
    answer = str(exc).partition(_DEBUG)[0].rpartition(_ANSWER)[2]
    status = found.group() if (found := _STATUS.match(answer)) else ""
    if isinstance(exc, UnauthenticatedError) or not status:
        return StoreError(Failure.FAILED, status or "no answer")
    return judge(status, _code(answer))


def judge(status: str, code: str) -> StoreError:
    """Judge an answer by its HTTP status and the store's own code."""
    words = f"{status} {code}".strip()
    if status == _FORBIDDEN and code in _DENIALS:
        return StoreError(Failure.DENIED, words)
    return StoreError(Failure.MISSING if status == _MISSING else Failure.FAILED, words)


def _code(answer: str) -> str:
    found = _CODE.search(answer)
    return found[1] or found[2] if found else ""
