from __future__ import annotations

import json

import pytest
from sluice_recipient import NotInstalled, NotUsable, open_table
from sluice_recipient.engines.official import load_pandas, load_spark

from tests.fakes.recipient_transport import PROFILE


@pytest.mark.parametrize("read", [load_pandas, load_spark])
def test_the_official_client_reads_its_profile_from_a_file(read):
    with pytest.raises(NotUsable, match="from a file"):
        read(open_table("sales.shop.orders", profile=PROFILE))


@pytest.mark.parametrize("read", [load_pandas, load_spark])
def test_where_it_is_missing_the_extra_is_named(read, tmp_path):
    file = tmp_path / "reader.share"
    file.write_text(json.dumps(PROFILE))

    with pytest.raises(NotInstalled, match=r"recipient\[url\]"):
        read(open_table(f"{file}#sales.shop.orders"))
