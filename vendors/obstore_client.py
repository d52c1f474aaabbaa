"""How obstore calls a store: how long it waits, and how often it tries again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig


def client_options(*, allow_http: bool, ca_file: str | None = None) -> ClientConfig:
    """Return the options of a client; a store behind plain HTTP is reached where that is allowed."""
    client: ClientConfig = {
        "allow_http": allow_http,
        "connect_timeout": timedelta(seconds=2),
        # A store that says nothing for so long is given up; a large checkpoint may take its time.
        "read_timeout": timedelta(seconds=10),
        "timeout": timedelta(minutes=5),
    }
    if ca_file:
        client["root_certificate"] = Path(ca_file).read_bytes()
    return client


def retry_config() -> RetryConfig:
    """Return when to try again: as often as a recipient would wait for."""
    return {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
