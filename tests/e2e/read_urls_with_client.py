"""Runs in the official client's environment: the rows of frames, whichever store their files lie on."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="attr-defined, import-not-found, import-untyped"

from __future__ import annotations

import yarl._url
from yarl._quoting import _Quoter

from tests.oracles.client_frames import main

# What the client means to do for Google, which takes a path only as it was signed: it sets this in a place
# that newer versions of yarl do not look at.
yarl._url.PATH_REQUOTER = _Quoter(safe="@:", protected="/+=")  # noqa: SLF001 -- yarl has no setting for it

if __name__ == "__main__":
    main()
