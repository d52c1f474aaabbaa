from __future__ import annotations

from urllib.parse import urlsplit

from tests.cases import each_case
from vendors.gcp.v4 import Place as GcsPlace
from vendors.s3_address import Place as S3Place
from vendors.sent_host import as_sent


@each_case(
    ("url", "host"),
    [
        ("https://s3.example", "s3.example"),
        ("https://s3.example:443", "s3.example"),
        ("https://s3.example:80", "s3.example:80"),
        ("http://s3.example:80", "s3.example"),
        ("http://s3.example:9000", "s3.example:9000"),
        ("http://[::1]:9000", "[::1]:9000"),
        ("http://[::1]", "[::1]"),
        ("http://[::80]", "[::80]"),
    ],
)
def test_host_is_the_one_that_clients_send(url, host):
    sent = as_sent(url)
    # A client that sends what the URL has sends the same as one that leaves a usual port out.
    assert urlsplit(sent).netloc == host
    assert S3Place(url=sent, region="x").host == GcsPlace.at(f"{url}/storage/").host == host
