"""One loader of botocore's service models for all sessions of a process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import botocore.loaders
import botocore.session
import pytest


@pytest.fixture(scope="session", autouse=True)
def one_botocore_loader() -> Iterator[None]:
    # Each session parses the models of its services again, which takes longer than most tests.
    # A loader is made for sharing: the clients of one session share theirs.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.loaders.create_loader))
        yield
