"""HTTP with the standard library: one request, one whole answer."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final, Protocol

from sluice_recipient.errors import Unavailable

_TIMEOUT_SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    url: str
    # They carry the token.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    # Names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    # It may hold a credential.
    body: bytes = field(default=b"", repr=False)


class Transport(Protocol):
    def send(self, request: Request) -> Response:
        """Return the answer, whatever its status; raise ``Unavailable`` when there is none."""


class UrllibTransport:
    """Certificates are verified, redirects are not followed: they could carry the token elsewhere."""

    def __init__(
        self, context: ssl.SSLContext | None = None, handlers: Sequence[urllib.request.BaseHandler] = ()
    ) -> None:
        https = urllib.request.HTTPSHandler(context=context or ssl.create_default_context())
        self._opener = urllib.request.build_opener(https, _NoRedirects, *handlers)

    def send(self, request: Request) -> Response:
        # A profile names an http or https endpoint, so no other scheme gets here.
        outgoing = urllib.request.Request(  # noqa: S310
            request.url, data=request.body, headers=dict(request.headers), method=request.method
        )
        try:
            with self._opener.open(outgoing, timeout=_TIMEOUT_SECONDS) as answer:
                return _response(answer.status, answer)
        except urllib.error.HTTPError as exc:
            with exc:
                return _response(exc.code, exc)
        except (OSError, HTTPException) as exc:
            raise Unavailable(f"cannot reach the gateway at {outgoing.host}: {_reason(exc)}") from exc


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _response(status: int, answer: Any) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(status=status, headers=headers, body=answer.read())


def _reason(exc: Exception) -> str:
    reason = getattr(exc, "reason", exc)
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
