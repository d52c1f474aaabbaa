"""Imports an engine's library, or says which extra brings it."""

from __future__ import annotations

import importlib
from typing import Any

from sluice_recipient.errors import NotInstalled


def load(module: str, extra: str) -> Any:
    """Return a module that one of our extras brings."""
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise NotInstalled(
            f"{module} is not installed; in a checkout of Sluice run: pip install './recipient[{extra}]'"
        ) from exc
