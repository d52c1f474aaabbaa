"""Why an index cannot be used: never a reason to fail, as the log itself says the same."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What became of an index when a version was read, as a metric counts it."""

    USED = "used"
    # There is none.
    NONE = "none"
    # Files of it are not there, or not all of them: it is half-written, or half deleted.
    MISSING = "missing"
    # It is of another table, or of a log that was written anew in the place of one.
    STALE = "stale"
    # Its content is not what it was when it was made, or not what the log says.
    CORRUPT = "corrupt"
    # It is of a later version than the one that is asked for.
    LATER = "later"
    # So much was committed since that the log is read sooner.
    OLD = "old"
    # The store that it is kept in does not answer.
    UNAVAILABLE = "unavailable"


class IndexFault(Exception):
    """Says what is wrong with an index, in words for whoever keeps it."""

    def __init__(self, outcome: Outcome, words: str) -> None:
        super().__init__(words)
        self.outcome = outcome


def corrupt(words: str) -> IndexFault:
    return IndexFault(Outcome.CORRUPT, words)


def missing(words: str) -> IndexFault:
    return IndexFault(Outcome.MISSING, words)
