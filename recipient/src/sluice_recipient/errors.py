"""What can go wrong for a recipient, each with what to do about it.

RecipientError
├── ProfileError      the profile, or the address of a table, cannot be used
├── AccessDenied      the gateway does not take the token
├── NotFound          there is no such table, or it is not shared with this recipient
├── Refused           the gateway does not give what was asked for, and asking again does not help
├── Unavailable       the gateway does not answer, or asks to come back later
├── NotUsable         the table is shared in a way that the engine cannot read
└── NotInstalled      a library is missing
"""

from __future__ import annotations


class RecipientError(Exception):
    """Base of all errors that this library raises."""


class ProfileError(RecipientError):
    """A profile, or the address of a table, that cannot be used."""


class AccessDenied(RecipientError):
    """The gateway does not take the token."""


class NotFound(RecipientError):
    """No such table, or none that is shared with this recipient."""


class Refused(RecipientError):
    """The gateway does not give what was asked for, and asking again does not help."""


class Unavailable(RecipientError):
    """The gateway does not answer, or asks to come back later."""


class NotUsable(RecipientError):
    """The table is shared in a way that the engine cannot read."""


class NotInstalled(RecipientError):
    """A library is missing; the message names the extra that brings it."""


class StaticCredentialWarning(UserWarning):
    """An engine was given a credential that it cannot renew."""
