"""What keeps a log from being read until somebody mends it, as the errors that tell of it carry it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.errors import GatewayError, InvalidArgument, Unsupported

_MISSING: Final = "RESOURCE_DOES_NOT_EXIST"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFault:
    """A fault of a log, told of without a name: whoever asks knows the table by one of its own."""

    # Goes on from "the log"; or has a place for whose log is missing.
    problem: str
    # Of the log; empty where no single one is to blame.
    file: str = ""
    is_missing: bool = False
    # False for a past version whose files were cleaned up.
    is_damage: bool = True

    def of(self, table: str = "") -> GatewayError:
        """Return the error for whoever knows the log by this table."""
        if self.is_missing:
            text = self.problem.format(f"table {table}" if table else "the table")
            return InvalidArgument(f"table files missing: {text}", error_code=_MISSING, fault=self)
        whose = f"table {table}: its log" if table else "the table's log"
        return Unsupported(f"{whose} {self.problem}", fault=self)


def faulty(problem: str, *, file: str = "") -> GatewayError:
    """Return the error for a log that is there and is not what it should be."""
    return LogFault(problem=problem, file=file).of()


def damaged(name: str, reason: str) -> GatewayError:
    """Return the error for a file of the log that is not what it should be."""
    return faulty(f"is damaged: {name} {reason}", file=name)


def version_gone(problem: str, *, file: str) -> GatewayError:
    """Return the error for a past version whose files were cleaned up."""
    return LogFault(problem=problem, file=file, is_damage=False).of()


def missing(template: str) -> GatewayError:
    """Return the error for no log, or files of it that are listed and never found."""
    return LogFault(problem=template, is_missing=True).of()
