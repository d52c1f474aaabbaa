"""What a request to Cloud Storage asks for: the JSON API's and the XML API's reading, listing and writing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from tests.doubles.gcp_boundary import Access

_GET = frozenset(
    {"alt", "fields", "projection", "prettyPrint", "generation", "ifGenerationMatch", "ifGenerationNotMatch"}
)
_LIST = frozenset(
    {
        *(
            "prefix",
            "delimiter",
            "pageToken",
            "maxResults",
            "startOffset",
            "endOffset",
            "fields",
            "projection",
        ),
        *("prettyPrint", "includeTrailingDelimiter", "includeFoldersAsPrefixes", "alt", "versions"),
    }
)
_XML_LIST = frozenset(
    {"list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after", "encoding-type"}
)
_WRITE = frozenset({"uploadType", "name", "alt", "fields", "projection", "prettyPrint", "ifGenerationMatch"})


class NotUnderstood(Exception):
    """A request that this double does not know, and therefore refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRequest:
    accesses: tuple[Access, ...]
    bucket: str
    key: str | None = None
    query: dict[str, str] = field(default_factory=dict)
    is_xml: bool = False
    is_listing: bool = False
    # Folders exist only as names here: whoever may ask is told that there is none.
    is_folder: bool = False


def parse_request(
    method: str, raw_path: str, raw_query: str, content_type: str, body: bytes
) -> StorageRequest:
    """Return what is asked for, by the text of the request line."""
    pairs = parse_qsl(raw_query, keep_blank_values=True, errors="strict")
    query = dict(pairs)
    if len(query) != len(pairs):
        raise NotUnderstood("a parameter is there twice")
    # The object's name is one segment there: its own slashes are encoded.
    found = re.fullmatch(
        r"/(?:(download|upload)/)?storage/v1/b/([^/]+)(?:/(o|folders|managedFolders)(?:/([^/]+))?)?", raw_path
    )
    return _json(method, found, query, content_type, body) if found else _xml(method, raw_path, query)


def _json(
    method: str, found: re.Match[str], query: dict[str, str], content_type: str, body: bytes
) -> StorageRequest:
    variant, raw_bucket, collection, raw_name = found.groups()
    bucket, name = unquote(raw_bucket, errors="strict"), unquote(raw_name or "", errors="strict")
    if variant == "upload":
        return _upload(method, bucket, query, content_type, body)
    if collection in ("folders", "managedFolders"):
        return _folder(method, bucket, collection, name, query)
    if name:
        return _on_key(method, bucket, name, query)
    if collection == "o":
        _expect(method == "GET" and set(query) <= _LIST)
        return _listing(bucket, query)
    return _bucket(method, bucket, query)


def _bucket(method: str, bucket: str, query: dict[str, str]) -> StorageRequest:
    _expect(method == "GET" and set(query) <= _GET)
    return StorageRequest(accesses=(_on_bucket("storage.buckets.get", bucket),), bucket=bucket, query=query)


def _xml(method: str, raw_path: str, query: dict[str, str]) -> StorageRequest:
    bucket, _, name = unquote(raw_path, errors="strict").removeprefix("/").partition("/")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]+", bucket) or bucket in (
        "storage",
        "download",
        "upload",
        "batch",
    ):
        raise NotUnderstood("neither the JSON API nor a bucket")
    if not name:
        _expect(method == "GET" and query.get("list-type") == "2" and set(query) <= _XML_LIST)
        return _listing(bucket, query, is_xml=True)
    _expect(set(query) <= {"generation"})
    return _on_key(method, bucket, name, query, is_xml=True)


def _listing(bucket: str, query: dict[str, str], *, is_xml: bool = False) -> StorageRequest:
    access = _on_bucket("storage.objects.list", bucket, query.get("prefix", ""))
    return StorageRequest(accesses=(access,), bucket=bucket, query=query, is_listing=True, is_xml=is_xml)


def _on_key(
    method: str, bucket: str, name: str, query: dict[str, str], *, is_xml: bool = False
) -> StorageRequest:
    permissions = {
        "GET": ("storage.objects.get",),
        "HEAD": ("storage.objects.get",),
        "DELETE": ("storage.objects.delete",),
        # Whoever writes over an object also deletes one.
        "PUT": ("storage.objects.create", "storage.objects.delete"),
    }
    _expect(method in permissions and set(query) <= _GET and (is_xml or method != "PUT"))
    _check_name(name)
    accesses = tuple(_on_object(permission, bucket, name) for permission in permissions[method])
    return StorageRequest(accesses=accesses, bucket=bucket, key=name, query=query, is_xml=is_xml)


def _upload(
    method: str, bucket: str, query: dict[str, str], content_type: str, body: bytes
) -> StorageRequest:
    _expect(method == "POST" and set(query) <= _WRITE and query.get("uploadType") in ("media", "multipart"))
    name = query.get("name") or _name_in(content_type, body)
    _check_name(name)
    access = _on_object("storage.objects.create", bucket, name)
    return StorageRequest(accesses=(access,), bucket=bucket, key=name, query=query)


def _name_in(content_type: str, body: bytes) -> str:
    boundary = re.fullmatch(rb"multipart/related; boundary=\"?([^\"]+)\"?", content_type.encode())
    _expect(boundary is not None)
    assert boundary is not None
    first = body.split(b"--" + boundary.group(1))[1]
    name = json.loads(first.partition(b"\r\n\r\n")[2]).get("name")
    _expect(isinstance(name, str))
    return str(name)


def _folder(method: str, bucket: str, collection: str, name: str, query: dict[str, str]) -> StorageRequest:
    _expect(method == "GET" and bool(name) and set(query) <= _GET)
    _check_name(name.removesuffix("/"))
    kind = "Folder" if collection == "folders" else "ManagedFolder"
    access = Access(
        permission=f"storage.{collection}.get",
        bucket=bucket,
        # The name of a folder ends in a slash.
        name=f"projects/_/buckets/{bucket}/{collection}/{name.removesuffix('/')}/",
        kind=f"storage.googleapis.com/{kind}",
    )
    return StorageRequest(accesses=(access,), bucket=bucket, key=name, query=query, is_folder=True)


def _on_bucket(permission: str, bucket: str, list_prefix: str = "") -> Access:
    return Access(
        permission=permission,
        bucket=bucket,
        name=f"projects/_/buckets/{bucket}",
        kind="storage.googleapis.com/Bucket",
        list_prefix=list_prefix,
    )


def _on_object(permission: str, bucket: str, name: str) -> Access:
    return Access(
        permission=permission,
        bucket=bucket,
        name=f"projects/_/buckets/{bucket}/objects/{name}",
        kind="storage.googleapis.com/Object",
    )


def _check_name(name: str) -> None:
    # Legal in Google's storage, but what stands behind this double tidies such paths up.
    _expect(all(segment not in ("", ".", "..") for segment in name.split("/")))


def _expect(condition: bool) -> None:  # noqa: FBT001 -- it is an assertion
    if not condition:
        raise NotUnderstood("a request of a form that is not understood here")
