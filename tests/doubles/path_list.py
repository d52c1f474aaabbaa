"""Turns the answer of List Blobs into that of Data Lake storage's Path - List."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from aiohttp import web


def to_path_list(body: bytes) -> web.Response:
    listed = ET.fromstring(body).find("Blobs")
    assert listed is not None
    paths: list[dict[str, Any]] = [
        {"name": (prefix.findtext("Name") or "").rstrip("/"), "isDirectory": "true", "contentLength": "0"}
        for prefix in listed.findall("BlobPrefix")
    ]
    for blob in listed.findall("Blob"):
        properties = {each.tag: each.text for each in blob.iterfind("Properties/*")}
        paths.append(
            {
                "name": blob.findtext("Name"),
                "contentLength": properties.get("Content-Length"),
                "lastModified": properties.get("Last-Modified"),
                "etag": properties.get("Etag"),
            }
        )
    return web.json_response({"paths": sorted(paths, key=lambda path: str(path["name"]))})
