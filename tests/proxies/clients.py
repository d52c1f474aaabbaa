"""HTTP clients as they are in use, each reading an answer to its end or saying that there was none."""

from __future__ import annotations

import asyncio
import http.client
import subprocess
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import aiohttp
import pytest
import requests

from tests.components import CURL

_PATIENCE = 60
# A part of the answer was missing, or the connection was reset.
_CURL_BROKEN = frozenset({18, 56})


class Broken(Exception):
    """The client says that the answer did not come to its end."""


def read_with_http_client(url: str, headers: Mapping[str, str]) -> bytes:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
    try:
        connection.request("POST", parts.path, b"{}", dict(headers))
        response = connection.getresponse()
        assert response.status == http.client.OK
        try:
            return response.read()
        except (http.client.IncompleteRead, ConnectionResetError) as exc:
            raise Broken from exc
    finally:
        connection.close()


def read_with_requests(url: str, headers: Mapping[str, str]) -> bytes:
    """Read line by line, as the official client does."""
    try:
        with requests.post(url, b"{}", headers=headers, stream=True, timeout=_PATIENCE) as response:
            return b"".join(line + b"\n" for line in response.iter_lines())
    except requests.exceptions.ChunkedEncodingError as exc:
        raise Broken from exc


def read_with_aiohttp(url: str, headers: Mapping[str, str]) -> bytes:
    async def read() -> bytes:
        timeout = aiohttp.ClientTimeout(total=_PATIENCE)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=b"{}", headers=headers) as response,
        ):
            return await response.read()

    try:
        return asyncio.run(read())
    except aiohttp.ClientPayloadError as exc:
        raise Broken from exc


def read_with_curl(url: str, headers: Mapping[str, str]) -> bytes:
    command = ["curl", "--silent", "--show-error", "--max-time", str(_PATIENCE), "--data", "{}"]
    for name, value in headers.items():
        command += ["--header", f"{name}: {value}"]
    if headers.get("Accept-Encoding", "identity") != "identity":
        command.append("--compressed")
    done = subprocess.run([*command, url], capture_output=True, check=False)
    if done.returncode in _CURL_BROKEN:
        raise Broken(done.stderr.decode())
    assert not done.returncode, done.stderr.decode()
    return done.stdout


READERS: Mapping[str, Callable[[str, Mapping[str, str]], bytes]] = {
    "http.client": read_with_http_client,
    "requests": read_with_requests,
    "aiohttp": read_with_aiohttp,
    "curl": read_with_curl,
}
# Test parameters.
READER_NAMES = [
    pytest.param(name, marks=[pytest.mark.component(CURL)] if name == "curl" else []) for name in READERS
]
