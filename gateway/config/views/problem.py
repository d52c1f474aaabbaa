"""What is wrong with a view, before it is known where that stands in the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to put right, in words that stand after a path."""

    message: str
    # The nearest right name.
    suggestion: str = ""

    def __str__(self) -> str:
        return f"{self.message}; did you mean {self.suggestion}?" if self.suggestion else self.message


class ViewError(Exception):
    """A query that cannot be a view, with all that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(dict.fromkeys(problems))
        super().__init__("; ".join(map(str, self.problems)))


def refuse(message: str, suggestion: str = "") -> ViewError:
    return ViewError([Problem(message=message, suggestion=suggestion)])
