from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from sluice_recipient import NotInstalled, NotUsable, SharedTable, open_table
from sluice_recipient.engines.official import load_pandas, load_spark
from sluice_recipient.errors import Refused
from sluice_recipient.transport import Response

from tests.fakes.recipient_transport import PROFILE, FakeTransport, lines

URL = "https://store.example/a?X-Amz-Signature=s3cr3t"


class FakeReader:
    """Asks and writes down what the official client's reader does, in the same order."""

    def __init__(self, table, rest_client, *, use_delta_format):
        assert use_delta_format
        self._table, self._rest_client = table, rest_client

    def to_pandas(self):
        self._rest_client.set_delta_format_header()
        answer = self._rest_client.list_files_in_table(self._table, limitHint=None, version=None)
        _, _, *files = [json.loads(answer.lines.pop(0)) for _ in range(len(answer.lines))]
        self._rest_client.remove_delta_format_header()
        return [file["file"]["deltaSingleAction"]["add"]["path"] for file in files]


@pytest.fixture
def official(monkeypatch) -> SimpleNamespace:
    """The official client, as far as it is used; it answers with what it was asked."""
    client = SimpleNamespace(load_as_spark=lambda address, **at: (address, at))
    monkeypatch.setitem(sys.modules, "delta_sharing", client)
    monkeypatch.setitem(sys.modules, "delta_sharing.reader", SimpleNamespace(DeltaSharingReader=FakeReader))
    return client


@pytest.fixture
def address(tmp_path) -> str:
    file = tmp_path / "reader.share"
    file.write_text(json.dumps(PROFILE))
    return f"{file}#sales.shop.orders"


def _table(path: str) -> SharedTable:
    transport = FakeTransport(_answer(path))
    return open_table("sales.shop.orders", profile=PROFILE, transport=transport)


def _answer(path: str) -> Response:
    add = {"path": path, "size": 1, "partitionValues": {}}
    body = lines(
        [
            {"protocol": {"deltaProtocol": {}}},
            {"metaData": {"deltaMetadata": {}}},
            {"file": {"deltaSingleAction": {"add": add}}},
        ]
    ).body
    headers = {"delta-table-version": "3", "delta-sharing-capabilities": "responseformat=delta"}
    return Response(status=200, headers=headers, body=body)


@pytest.mark.usefixtures("official")
def test_the_official_client_reads_an_answer_that_was_looked_at():
    assert load_pandas(_table(URL)) == [URL]


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize("path", ["/etc/s3cr3t", "file:///etc/s3cr3t", "https://store.example/etc/s3cr3t"])
def test_what_the_official_client_would_open_on_this_machine_never_comes_to_it(path):
    with pytest.raises(Refused) as raised:
        load_pandas(_table(path))
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({}, {}),
        ({"versionAsOf": "3"}, {"version": 3}),
        ({"versionAsOf": 3}, {"version": 3}),
        ({"VERSIONASOF": "3"}, {"version": 3}),
        ({"timestampAsOf": "2026-01-31 00:00:00"}, {"timestamp": "2026-01-31 00:00:00"}),
    ],
)
def test_spark_reads_the_version_that_it_was_told_to(address, options, at):
    assert load_spark(open_table(address), options) == (address, at)


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"versionAsOf": "3", "readChangeFeed": "true"}, "no option readChangeFeed; leave it out"),
        ({"versionAsOf": "latest"}, "versionAsOf is 'latest'; it is a number"),
    ],
)
def test_an_option_that_spark_cannot_be_given_is_named(address, options, complaint):
    with pytest.raises(NotUsable, match=complaint):
        load_spark(open_table(address), options)


def test_the_spark_connector_reads_its_profile_from_a_file():
    with pytest.raises(NotUsable, match="from a file"):
        load_spark(open_table("sales.shop.orders", profile=PROFILE), {})


@pytest.mark.parametrize("read", [load_pandas, lambda table: load_spark(table, {})], ids=["pandas", "spark"])
def test_where_it_is_missing_the_extra_is_named(read, address):
    with pytest.raises(NotInstalled, match=r"recipient\[url\]"):
        read(open_table(address))
