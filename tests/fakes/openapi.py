"""The OpenAPI document, parsed once in a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.edge import documentation


@pytest.fixture(scope="session", autouse=True)
def one_openapi_document() -> Iterator[None]:
    """Parse the document once: each edge would parse it again, which takes most of its start."""
    document = documentation.load_document()
    with pytest.MonkeyPatch.context() as patch:
        # A copy, as an edge puts its own servers into it.
        patch.setattr(documentation, "load_document", lambda: dict(document))
        yield
