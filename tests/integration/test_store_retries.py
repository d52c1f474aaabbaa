"""A store that throttles, fails or breaks off: tried again a few times, then given up with a clear error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from obstore.store import S3Store

from gateway.domain.location import parse_location
from gateway.errors import Unavailable
from tests.ports import free_port
from vendors.obstore_client import client_options, retry_config
from vendors.obstore_reader import ObstoreReader

CONTENT = b'{"commitInfo":{}}\n'
TABLE = parse_location("s3://lake/t")
NAME = "00000000000000000000.json"
LISTED = (
    "<ListBucketResult><Name>lake</Name><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents>"
    f"<Key>t/_delta_log/{NAME}</Key><Size>{len(CONTENT)}</Size><ETag>&quot;e&quot;</ETag>"
    "<LastModified>2025-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>"
).encode()
ERROR = b"<Error><Code>SlowDown</Code><Message>secret words of the store</Message></Error>"
TRIES = 1 + retry_config()["max_retries"]


@dataclass
class Store:
    """Fails the next requests with a status; 0 breaks off in the middle of the body."""

    failures: list[int] = field(default_factory=list)
    requests: int = 0

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.requests += 1
        status = self.failures.pop(0) if self.failures else 200
        body = LISTED if "list-type" in request.path else CONTENT
        body = ERROR if status >= 400 else body
        request.send_response(status or 200)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("ETag", '"e"')
        request.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        request.end_headers()
        request.wfile.write(body if status else body[: len(body) // 2])
        request.close_connection = True


@contextmanager
def serving(store: Store) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            store.answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name it has there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def reader(store) -> Iterator[ObstoreReader]:
    with serving(store) as port:
        yield ObstoreReader(
            S3Store(
                "lake",
                endpoint=f"http://127.0.0.1:{port}",
                region="us-east-1",
                access_key_id="key",
                secret_access_key="secret",
                client_options=client_options(allow_http=True),
                retry_config=retry_config(),
            )
        )


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_store_that_throttles_or_fails_for_a_moment_is_asked_again(store, reader, status):
    store.failures = [status, status]
    assert [file.name for file in await reader.list_log(TABLE, start="")] == [NAME]
    assert store.requests == 3

    store.failures = [status]
    assert await reader.read_log(TABLE, NAME) == CONTENT


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_store_that_goes_on_throttling_or_failing_is_given_up(store, reader, status, caplog):
    store.failures = [status] * 100
    with pytest.raises(Unavailable, match="try again later") as caught:
        await reader.list_log(TABLE, start="")
    assert store.requests == TRIES
    assert "secret words" not in caught.value.message + caplog.text

    with pytest.raises(Unavailable, match="try again later"):
        await reader.read_log(TABLE, NAME)
    assert store.requests == 2 * TRIES


async def test_a_body_that_always_breaks_off_is_never_taken_for_the_whole(store, reader):
    store.failures = [0] * 100
    with pytest.raises(Unavailable, match="try again later"):
        await reader.read_log(TABLE, NAME)
    assert store.requests <= TRIES
