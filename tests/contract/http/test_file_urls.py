"""The URLs of a query's files, where they lead to the gateway itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.client import Client, fetch
from tests.contract.http.facts import Gateway


@pytest.fixture
def file(client: Client, gateway: Gateway) -> dict[str, Any]:
    if not gateway.serves_files:
        pytest.skip("the files are elsewhere")
    answer = client.post(f"{gateway.plain.path}/query")
    return dict(answer.lines()[2]["file"])


@pytest.mark.smoke
def test_a_url_is_good_without_a_token(file: dict[str, Any]) -> None:
    answer = fetch("GET", file["url"], {})
    assert answer.status == 200
    assert len(answer.body) == file["size"]
    assert answer.body[:4] == answer.body[-4:] == b"PAR1"


def test_a_range_is_206(file: dict[str, Any]) -> None:
    last = file["size"] - 1
    answer = fetch("GET", file["url"], {"Range": f"bytes={last - 3}-{last}"})
    assert (answer.status, answer.body) == (206, b"PAR1")
    assert answer.headers["Content-Range"] == f"bytes {last - 3}-{last}/{file['size']}"


def test_head_has_the_size_and_an_etag(file: dict[str, Any]) -> None:
    answer = fetch("HEAD", file["url"], {})
    assert answer.status == 200
    assert int(answer.headers["Content-Length"]) == file["size"]
    assert answer.headers["ETag"]


@pytest.mark.smoke
def test_a_url_that_was_changed_is_refused(file: dict[str, Any]) -> None:
    url = file["url"]
    changed = url[:-1] + ("A" if url[-1] != "A" else "B")
    for wrong in (
        changed,
        url.split("?")[0],
        url.replace("se=", "se=9"),
        url.replace(".parquet", ".parqueu"),
    ):
        assert fetch("GET", wrong, {}).error() == (403, "PERMISSION_DENIED")
