"""A call on the catalog: what is asked for, and of what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """A method and the names it was given, as the caller wrote them."""

    method: str
    share: str = ""
    schema: str = ""
    table: str = ""
