"""Files that a configuration names."""

from __future__ import annotations

from pathlib import Path as FilePath

from gateway.config.path import Path
from gateway.config.report import Report


def check_file(file: str, path: Path, report: Report) -> None:
    """Report a file that cannot be opened for reading."""
    try:
        with FilePath(file).open("rb"):
            return
    except OSError as exc:
        report.fault(path, f"names a file that cannot be read ({exc.strerror})", file)
    except ValueError:
        report.fault(path, "must be the path of a file", file)
