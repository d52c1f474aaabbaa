"""What a request to Blob storage or Data Lake storage asks for, and which permission of a SAS it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.doubles.azure_sas import PARAMETERS, AccessDenied

_LIST_BLOBS = frozenset(
    {"restype", "comp", "prefix", "delimiter", "marker", "maxresults", "include", "startFrom", "timeout"}
)
_PATH_LIST = frozenset({"resource", "recursive", "directory", "maxResults", "timeout", "upn"})
# By method and `comp`: the name of the operation, and the permissions of which one is enough.
_BLOB_OPERATIONS = {
    ("GET", ""): ("Get Blob", "r"),
    ("HEAD", ""): ("Get Blob Properties", "r"),
    ("GET", "metadata"): ("Get Blob Metadata", "r"),
    ("GET", "blocklist"): ("Get Block List", "r"),
    ("PUT", ""): ("Put Blob", "cw"),
    ("PUT", "block"): ("Put Block", "cw"),
    ("PUT", "blocklist"): ("Put Block List", "cw"),
    ("PUT", "metadata"): ("Set Blob Metadata", "w"),
    ("PUT", "properties"): ("Set Blob Properties", "w"),
    ("DELETE", ""): ("Delete Blob", "d"),
}
_BLOB_PARAMETERS = frozenset({"comp", "blockid", "blocklisttype", "timeout"})
_READING = frozenset("rl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    name: str
    container: str
    # Below the container; empty for an operation on the container.
    path: str
    permissions: str
    is_listing: bool = False
    is_path_list: bool = False
    is_batch: bool = False
    # The directory that a listing stays in, if it stays in one.
    listed_directory: str | None = None
    # What Azurite is asked instead, where it does not know the question.
    blob_query: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        return not set(self.permissions) <= _READING

    @property
    def target(self) -> str:
        return f"{self.container}/{self.path}" if self.path else self.container


def operation_of(method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> Operation:
    """Return what is asked for, or refuse what is not understood."""
    container, _, rest = path.partition("/")
    own = {name: value for name, value in query.items() if name not in PARAMETERS}
    if not container:
        raise AccessDenied("AuthorizationResourceTypeMismatch", "an operation on the whole account")
    if rest:
        return _on_blob(method, container, rest, headers, own)
    if method == "GET" and own.get("restype") == "container" and own.get("comp") == "list":
        return _list_blobs(container, own)
    if method == "GET" and own.get("resource") == "filesystem":
        return _path_list(container, own)
    if method == "POST" and own == {"restype": "container", "comp": "batch"}:
        # The batch as a whole belongs to the container, so that a directory's SAS never opens it.
        return Operation(name="Blob Batch", container=container, path="", permissions="d", is_batch=True)
    raise AccessDenied("AuthorizationFailure", "an operation on the container itself")


def _on_blob(
    method: str, container: str, path: str, headers: Mapping[str, str], own: Mapping[str, str]
) -> Operation:
    known = _BLOB_OPERATIONS.get((method, own.get("comp", "")))
    if known is None or set(own) - _BLOB_PARAMETERS or "x-ms-copy-source" in headers:
        raise AccessDenied("AuthorizationFailure", "an operation that is not understood here")
    name, permissions = known
    return Operation(name=name, container=container, path=path, permissions=permissions)


def _list_blobs(container: str, own: Mapping[str, str]) -> Operation:
    if set(own) - _LIST_BLOBS:
        raise AccessDenied("AuthorizationFailure", "a listing that is not understood here")
    folder, slash, _ = own.get("prefix", "").rpartition("/")
    return Operation(
        name="List Blobs",
        container=container,
        path="",
        permissions="l",
        is_listing=True,
        listed_directory=_plain(folder) if slash else None,
    )


def _path_list(container: str, own: Mapping[str, str]) -> Operation:
    directory = own.get("directory", "").strip("/")
    if set(own) - _PATH_LIST or own.get("recursive") not in ("true", "false"):
        raise AccessDenied("AuthorizationFailure", "a listing that is not understood here")
    prefix = {"prefix": f"{directory}/"} if directory else {}
    delimiter = {} if own["recursive"] == "true" else {"delimiter": "/"}
    return Operation(
        name="Path - List",
        container=container,
        path="",
        permissions="l",
        is_listing=True,
        is_path_list=True,
        listed_directory=_plain(directory) if directory else None,
        blob_query={"restype": "container", "comp": "list", **prefix, **delimiter},
    )


def _plain(directory: str) -> str:
    if any(segment in ("", ".", "..") for segment in directory.split("/")):
        raise AccessDenied("InvalidUri", "a directory with empty segments, or with dots for segments", 400)
    return directory
