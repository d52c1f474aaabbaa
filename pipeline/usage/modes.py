"""How a request gives access, or would have: by URLs of files, by a credential for a directory, or not."""

from __future__ import annotations

from typing import Final

URL, DIR, NEITHER = "url", "dir", "none"
# By operation, for requests without a grant: those that were refused or failed do not say it themselves.
MODES: Final = {
    "queryTable": URL,
    # The result of a query that had to wait.
    "getQueryInfo": URL,
    "queryTableChanges": URL,
    "generateTemporaryTableCredentials": DIR,
    "getAwsCredentials": DIR,
}
