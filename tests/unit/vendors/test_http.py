from __future__ import annotations

import pytest

from vendors.http import Reply, Request, check_endpoint


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'"text"'])
def test_body_that_is_no_object_has_no_fields(body):
    assert Reply(status=200, body=body).fields() == {}


def test_neither_headers_nor_bodies_are_shown():
    shown = repr(Request(method="GET", url="https://a.example", headers={"a": "hush"}, body=b"hush"))

    assert "hush" not in shown + repr(Reply(status=200, body=b"hush"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://a.example/", "https://a.example"),
        ("https://a.example:8443/base", "https://a.example:8443/base"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("http://[::1]:9000/", "http://[::1]:9000"),
        ("http://localhost:9000", "http://localhost:9000"),
    ],
)
def test_endpoint_loses_its_last_slash(text, kept):
    assert check_endpoint(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example",
        "https://",
        "ftp://a.example",
        "http://a.example",
        "http://10.0.0.1",
        "http://127.0.0.1.example",
        "http://localhost.example",
        "https://user:pass@a.example",
        "https://a.example?x=1",
        "https://a.example#x",
        "file:///etc/passwd",
    ],
)
def test_endpoint_that_would_show_secrets_is_refused(text):
    with pytest.raises(ValueError, match="an endpoint"):
        check_endpoint(text)
