from __future__ import annotations

import io
import urllib.error
import urllib.request
from email.message import Message
from http.client import RemoteDisconnected
from typing import Any
from urllib.response import addinfourl

import pytest
from sluice_recipient.errors import Refused, Unavailable
from sluice_recipient.transport import Request, UrllibTransport

from tests.cases import each_case


class Answering(urllib.request.HTTPHandler):
    """Answers in place of the network, and keeps what it was asked."""

    def __init__(self, status=200, failure=None, **headers):
        super().__init__()
        self.asked = []
        self._status = status
        self._failure = failure
        self._headers = Message()
        for name, value in headers.items():
            self._headers[name] = value

    def http_open(self, request):
        self.asked.append(request)
        if self._failure is not None:
            raise self._failure
        answer: Any = addinfourl(io.BytesIO(b"body"), self._headers, request.full_url, self._status)
        answer.msg = "made up"
        return answer


def _send(handler):
    request = Request(
        method="POST", url="http://gateway.example/x", headers={"Authorization": "Bearer t"}, body=b"{}"
    )
    return UrllibTransport(handlers=[handler]).send(request)


def test_a_request_is_sent_as_it_is():
    handler = Answering(Location="elsewhere")
    response = _send(handler)

    (sent,) = handler.asked
    assert (sent.get_method(), sent.full_url, sent.data) == ("POST", "http://gateway.example/x", b"{}")
    assert sent.get_header("Authorization") == "Bearer t"
    assert (response.status, response.headers["location"], response.body) == (200, "elsewhere", b"body")


@each_case("status", [301, 302, 307, 308, 401, 404, 503])
def test_every_status_is_an_answer_and_no_redirect_is_followed(status):
    handler = Answering(status, Location="http://elsewhere.example/")

    assert _send(handler).status == status
    assert len(handler.asked) == 1


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")), "Connection refused"),
        (TimeoutError(), "TimeoutError"),
        (RemoteDisconnected("closed without response"), "closed without response"),
    ],
)
def test_no_answer_is_said_with_its_reason(failure, reason):
    with pytest.raises(Unavailable, match=rf"gateway\.example: .*{reason}"):
        _send(Answering(failure=failure))


@each_case(
    "url",
    [
        "file:///etc/hostname?s3cr3t",
        "FILE://localhost/etc/hostname?s3cr3t",
        "data:text/plain,s3cr3t",
        "ftp://store.example/a?s3cr3t",
        "s3cr3t",
        "https",
        "",
        "://s3cr3t",
        "URL:https://store.example/a?s3cr3t",
        "https://store.example/a b?s3cr3t",
        "https://store.example/\xe4?s3cr3t",
        "https://store.example:s3cr3t/a",
        "https://[::1/a?s3cr3t",
        "https://s3cr3t\u2100/a",
    ],
)
def test_what_is_no_http_or_https_address_is_not_opened_and_not_quoted(url):
    with pytest.raises(Refused, match="no http or https address") as raised:
        UrllibTransport().send(Request(method="GET", url=url))

    assert "s3cr3t" not in f"{raised.value!r}{raised.value.__cause__!r}"
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize("url", ["file:///etc/hostname", "data:text/plain,x", "ftp://store.example/a"])
def test_the_opener_itself_knows_no_other_scheme(url, monkeypatch):
    monkeypatch.setenv("ftp_proxy", "http://proxy.example")

    handler = Answering()
    UrllibTransport(handlers=[handler])

    with pytest.raises(urllib.error.URLError, match="unknown url type"):
        handler.parent.open(url)


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "")
    handler = Answering()
    _send(handler)

    (sent,) = handler.asked
    assert (sent.host, sent.full_url) == ("proxy.example:3128", "http://gateway.example/x")


def test_a_request_shows_neither_its_url_nor_its_token():
    request = Request(
        method="GET", url="https://store.example/a?sig=s3cr3t", headers={"Authorization": "Bearer s3cr3t"}
    )

    assert "s3cr3t" not in repr(request)
