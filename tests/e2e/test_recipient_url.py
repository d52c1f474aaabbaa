"""A recipient reads tables that are shared by URLs with the same calls."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sluice_recipient.address import parse_name
from sluice_recipient.client import GatewayClient
from sluice_recipient.profile import read_profile
from sluice_recipient.transport import Request, Response, UrllibTransport

from tests.components import CLIENT
from tests.e2e.official_client import ClientError
from tests.e2e.recipient_lake import RecipientProcess, recipient_environment

ORDERS = "sample.sales.orders"
ROWS = 1000

pytestmark = pytest.mark.component(CLIENT)


@pytest.fixture
def reader(url_reader: RecipientProcess) -> RecipientProcess:
    """The recipient's library with no table open."""
    url_reader.call("forget")
    return url_reader


@pytest.mark.parametrize("mode", ["auto", "url"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_engine_reads_a_table_that_has_no_directory_access(served, reader, engine, mode):
    address = f"{served.profile}#{ORDERS}"
    reader.call("open", address, mode=mode)

    assert reader.call("count", engine, address) == ROWS


def test_deltalake_says_that_it_needs_a_directory(served, reader):
    with pytest.raises(ClientError, match=r"NotUsable: .*use to_polars"):
        reader.call("count", "deltalake", f"{served.profile}#{ORDERS}")


def test_a_directory_that_is_not_shared_is_refused_by_the_gateway(served, reader):
    address = f"{served.profile}#{ORDERS}"
    reader.call("open", address, mode="dir")

    with pytest.raises(ClientError, match=r"Refused: .*HTTP 400"):
        reader.call("count", "polars", address)


class CountingTransport(UrllibTransport):
    """Keeps the status of each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: list[int] = []

    def send(self, request: Request) -> Response:
        response = super().send(request)
        self.statuses.append(response.status)
        return response


def test_how_a_table_is_shared_takes_one_call_that_is_answered(served):
    transport = CountingTransport()

    info = GatewayClient(read_profile(served.profile), transport).describe(parse_name(ORDERS))

    assert info.access_modes == {"url"}
    assert transport.statuses == [200]


def test_a_reader_that_has_seen_enough_is_no_error(served):
    command = [sys.executable, "-m", "sluice_recipient", "tables", str(served.profile)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=recipient_environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (0, b"")
