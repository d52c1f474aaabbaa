"""Loads a text as a configuration before it takes the place of the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.config.load import load
from gateway.config.schema import Config


def check_text(text: str, env: Mapping[str, str]) -> Config:
    """Return what a gateway would read in a file with this text; raise ``ConfigError`` if it refuses it."""
    # Only its owner may enter the directory: the text may hold secrets.
    with TemporaryDirectory(prefix="sluice-") as directory:
        file = Path(directory, "server.yaml")
        file.write_bytes(text.encode("utf-8"))
        return load(file, env).config
