"""The credential access boundary: what is left of an identity's rights in a token for one directory."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from gateway.domain.location import Location
from gateway.errors import Unsupported

# Reads objects, lists objects and folders; nothing of buckets, ACLs or policies.
_ROLE: Final = "inRole:roles/storage.objectViewer"
# Objects, and what stands for a directory: managed folders, and folders of a hierarchical namespace.
_KINDS: Final = ("objects", "managedFolders", "folders")
_LIST_PREFIX: Final = "storage.googleapis.com/objectListPrefix"
# What the token exchange takes; the path is in there once for each way to reach it.
_MOST_CHARACTERS: Final = 2048

_ESCAPES: Final = str.maketrans(
    {"\\": r"\\", "'": r"\'", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
)
# What is left when those are gone: C0, DEL, C1, separators that break lines, lone surrogates.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def access_boundary(location: Location) -> dict[str, Any]:
    """Return the boundary that leaves reading and listing below a location."""
    bucket = f"projects/_/buckets/{location.authority}"
    rule: dict[str, Any] = {
        "availablePermissions": [_ROLE],
        "availableResource": f"//storage.googleapis.com/{bucket}",
    }
    if not location.is_root:
        rule["availabilityCondition"] = {"expression": _condition(bucket, f"{location.path}/")}
    boundary = {"accessBoundaryRules": [rule]}
    if (size := len(json.dumps(boundary))) > _MOST_CHARACTERS:
        raise Unsupported(
            f"the location is too long: its access boundary takes {size} of {_MOST_CHARACTERS} characters"
        )
    return {"accessBoundary": boundary}


def cel_string(text: str) -> str:
    """Return a CEL literal whose value is the text."""
    escaped = text.translate(_ESCAPES)
    if found := _UNSAFE.search(escaped):
        raise Unsupported(f"an access boundary cannot name the character {found.group()!r}")
    return f"'{escaped}'"


def _condition(bucket: str, prefix: str) -> str:
    # Every literal ends in the slash: without it the neighbours whose names begin alike would be open.
    names = [f"resource.name.startsWith({cel_string(f'{bucket}/{kind}/{prefix}')})" for kind in _KINDS]
    listed = f"api.getAttribute({cel_string(_LIST_PREFIX)}, '').startsWith({cel_string(prefix)})"
    return " || ".join([*names, listed])
