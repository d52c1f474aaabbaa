"""A recipient reads tables that are shared by URLs with the same calls, through the official client."""

from __future__ import annotations

import pytest

from tests.components import CLIENT
from tests.e2e.official_client import ClientError
from tests.e2e.recipient_lake import recipient

ORDERS = "sample.sales.orders"
ROWS = 1000

pytestmark = pytest.mark.component(CLIENT)


@pytest.mark.parametrize("mode", ["auto", "url"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_engine_reads_a_table_that_has_no_directory_access(served, engine, mode):
    address = f"{served.profile}#{ORDERS}"
    with recipient() as reader:
        reader.call("open", address, mode=mode)

        assert reader.call("count", engine, address) == ROWS


def test_deltalake_says_that_it_needs_a_directory(served):
    with recipient() as reader, pytest.raises(ClientError, match=r"NotUsable: .*use to_polars"):
        reader.call("count", "deltalake", f"{served.profile}#{ORDERS}")


def test_a_directory_that_is_not_shared_is_refused_by_the_gateway(served):
    address = f"{served.profile}#{ORDERS}"
    with recipient() as reader:
        reader.call("open", address, mode="dir")

        with pytest.raises(ClientError, match=r"Refused: .*HTTP 400"):
            reader.call("count", "polars", address)
