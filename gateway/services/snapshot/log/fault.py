"""What keeps a log from being read until somebody mends it."""

from __future__ import annotations

from typing import Final

from gateway.errors import GatewayError, InvalidArgument, Unsupported

_MISSING: Final = "RESOURCE_DOES_NOT_EXIST"


class LogFault(Unsupported):
    """A log that is there and is not what it should be; ``problem`` goes on from "the log"."""

    def __init__(self, problem: str, *, file: str = "") -> None:
        super().__init__(f"the table's log {problem}")
        self.problem = problem
        # Of the log; empty where no single one is to blame.
        self.file = file

    def of(self, table: object) -> GatewayError:
        """Return the error for whoever knows the log by this table: others know it by another name."""
        return Unsupported(f"table {table}: its log {self.problem}")


class VersionGone(LogFault):
    """A past version whose files were cleaned up, which is no damage."""


class LogMissing(InvalidArgument):
    """No log, or files of it that are listed and never found; the template has a place for whose it is."""

    def __init__(self, template: str) -> None:
        super().__init__(f"table files missing: {template.format('the table')}", error_code=_MISSING)
        self._template = template

    def of(self, table: object) -> GatewayError:
        text = self._template.format(f"table {table}")
        return InvalidArgument(f"table files missing: {text}", error_code=_MISSING)


def damaged(name: str, reason: str) -> LogFault:
    """Return the error for a file of the log that is not what it should be."""
    return LogFault(f"is damaged: {name} {reason}", file=name)
