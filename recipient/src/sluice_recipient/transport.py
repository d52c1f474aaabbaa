"""HTTP with the standard library: one request, one whole answer, and patience with who is busy."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, InvalidURL
from typing import Any, Final, Protocol

from sluice_recipient.errors import Refused, Unavailable

_TIMEOUT_SECONDS: Final = 60
_TRIES: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.5
# A server that wants longer is left to the caller's patience.
_LONGEST_PAUSE_SECONDS: Final = 30.0
# Without the URL: one of a file opens it for whoever has it.
_NO_ADDRESS: Final = "the server names a URL that is no http or https address; ask the provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    # One of a file opens it for whoever has it.
    url: str = field(repr=False)
    # They may carry the token.
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
        """Return the answer, whatever its status; raise ``Unavailable`` when there is none.

        Raise ``Refused`` for what is no http or https address.
        """


class UrllibTransport:
    """Certificates are verified, redirects are not followed: they could carry the token elsewhere."""

    def __init__(
        self, context: ssl.SSLContext | None = None, handlers: Sequence[urllib.request.BaseHandler] = ()
    ) -> None:
        https = urllib.request.HTTPSHandler(context=context or ssl.create_default_context())
        # Not ``build_opener``, which opens files and other schemes as well.
        self._opener = urllib.request.OpenerDirector()
        # The first that can open a scheme does.
        for handler in (*handlers, https, *_handlers()):
            self._opener.add_handler(handler)

    def send(self, request: Request) -> Response:
        if not request.url.lower().startswith(("http://", "https://")):
            raise Refused(_NO_ADDRESS)
        outgoing = _outgoing(request)
        try:
            with self._opener.open(outgoing, timeout=_TIMEOUT_SECONDS) as answer:
                return _response(answer.status, answer)
        except urllib.error.HTTPError as exc:
            with exc:
                return _response(exc.code, exc)
        except (InvalidURL, UnicodeError):
            # Without the cause: it quotes the URL.
            raise Refused(_NO_ADDRESS) from None
        except (OSError, HTTPException) as exc:
            raise Unavailable(f"cannot reach {outgoing.host}: {_reason(exc)}") from exc


def _outgoing(request: Request) -> urllib.request.Request:
    try:
        return urllib.request.Request(  # noqa: S310
            request.url, data=request.body, headers=dict(request.headers), method=request.method
        )
    except ValueError:
        # Without the cause, here too: it quotes the host, or what was taken for one.
        raise Refused(_NO_ADDRESS) from None


def send_patiently(transport: Transport, request: Request, sleep: Callable[[float], None]) -> Response:
    """Return the answer that counts, having asked again while the server was busy or away."""
    pause = _FIRST_PAUSE_SECONDS
    for _ in range(_TRIES - 1):
        try:
            response = transport.send(request)
            wait = _wait_of(response, pause)
        except Unavailable:
            wait = pause
        if wait is None:
            return response
        sleep(wait)
        pause *= 2
    return transport.send(request)


def is_transient(status: int) -> bool:
    """Tell whether asking again may help."""
    return status == 429 or status >= 500  # noqa: PLR2004


def _wait_of(response: Response, pause: float) -> float | None:
    """Return how long to wait before the next try, or None when this answer counts."""
    if not is_transient(response.status):
        return None
    wanted = response.headers.get("retry-after", "")
    # The other form of the header is a date, which nobody sends here.
    if not wanted.isdecimal():
        return pause
    return max(float(wanted), pause) if int(wanted) <= _LONGEST_PAUSE_SECONDS else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _handlers() -> Sequence[urllib.request.BaseHandler]:
    proxies = {
        scheme: url for scheme, url in urllib.request.getproxies().items() if scheme in {"http", "https"}
    }
    return (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
        _NoRedirects(),
    )


def _response(status: int, answer: Any) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(status=status, headers=headers, body=answer.read())


def _reason(exc: Exception) -> str:
    reason = getattr(exc, "reason", exc)
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
