"""The OpenAPI document, and a page to read it and try it out with."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any, Final

import yaml
from aiohttp import hdrs, web

from gateway.edge.settings import EdgeSettings

_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)


class Documentation:
    """Both are made once, and served to anybody."""

    def __init__(self, settings: EdgeSettings) -> None:
        document = load_document()
        document["servers"] = [{"url": settings.public_url.rstrip("/") or settings.base_path or "/"}]
        self._document = json.dumps(document, separators=(",", ":")).encode()
        self._page = _read("docs.html")
        self._policy = _policy(self._page)

    async def openapi(self, request: web.Request) -> web.StreamResponse:
        headers = {hdrs.CONTENT_TYPE: "application/json; charset=utf-8", hdrs.CACHE_CONTROL: "no-cache"}
        return web.Response(body=self._document, headers=headers)

    async def page(self, request: web.Request) -> web.StreamResponse:
        headers = {
            hdrs.CONTENT_TYPE: "text/html; charset=utf-8",
            hdrs.CACHE_CONTROL: "no-cache",
            "Content-Security-Policy": self._policy,
            "Referrer-Policy": "no-referrer",
            "X-Frame-Options": "DENY",
        }
        return web.Response(body=self._page.encode(), headers=headers)


def load_document() -> dict[str, Any]:
    # The parser in C, where there is one: the other takes ten times as long.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load(_read("openapi.yaml"), loader)  # noqa: S506 -- both loaders are safe
    return document


def _read(name: str) -> str:
    return resources.files("gateway.edge").joinpath(name).read_text("utf-8")


def _policy(page: str) -> str:
    """Allow the page's own script and style by their hashes, calls to this server, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(_SCRIPT, page)}",
            f"style-src {_hashes(_STYLE, page)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _hashes(pattern: re.Pattern[str], page: str) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in pattern.findall(page))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
