"""Tables for people: columns that line up, and nothing in them that a terminal obeys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def text_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int] = ()
) -> Iterator[str]:
    """Return the lines of a table whose columns are as wide as they must be; those of numbers end in line."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for line in (titles, ["─" * width for width in widths], *cells):
        padded = (
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()


def printable(text: str) -> str:
    """Return text that cannot move a terminal's cursor: names are what callers made up."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
