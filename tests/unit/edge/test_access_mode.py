from __future__ import annotations

import pytest

from gateway.edge.access_mode import negotiate, require_dir, require_url
from gateway.edge.capabilities import parse
from gateway.errors import Unsupported
from gateway.v1.catalog_pb2 import ACCESS_MODE_DIR, ACCESS_MODE_URL, Table

MODES = {"url": ACCESS_MODE_URL, "dir": ACCESS_MODE_DIR}


def table(*modes: str) -> Table:
    return Table(share="s", schema="d", name="t", access_modes=[MODES[mode] for mode in modes])


@pytest.mark.parametrize(
    ("client", "offered", "answered"),
    [
        ("accessModes=url", ("url",), "accessModes=url"),
        ("accessModes=url", ("url", "dir"), "accessModes=url"),
        ("accessModes=dir", ("url",), "accessModes=url"),
        ("accessModes=dir", ("dir",), "accessModes=dir"),
        ("accessModes=dir", ("url", "dir"), "accessModes=dir"),
        ("accessModes=url,dir", ("url",), "accessModes=url"),
        ("accessModes=url,dir", ("dir",), "accessModes=dir"),
        ("accessModes=url,dir", ("url", "dir"), "accessModes=url,dir"),
        ("accessMode=dir,url", ("url", "dir"), "accessMode=url,dir"),
        ("accessModes=url,prefix", ("dir",), "accessModes=prefix"),
        ("", ("url",), ""),
        ("", ("dir",), ""),
        ("accessModes=nonsense", ("dir",), ""),
    ],
)
def test_a_mode_in_common_is_answered(client: str, offered: tuple[str, ...], answered: str) -> None:
    assert negotiate(parse([client]), table(*offered)) == answered


def test_a_client_of_urls_and_a_table_of_directories_do_not_meet() -> None:
    with pytest.raises(Unsupported, match=r"s\.d\.t.* dir "):
        negotiate(parse(["accessModes=url"]), table("dir"))


def test_urls_are_refused_for_a_table_that_does_not_offer_them() -> None:
    with pytest.raises(Unsupported, match=r"s\.d\.t.* dir "):
        require_url(table("dir"))
    require_url(table("url", "dir"))


def test_credentials_are_refused_for_a_table_that_does_not_offer_its_directory() -> None:
    with pytest.raises(Unsupported, match=r"s\.d\.t.* dir .*url"):
        require_dir(table("url"))
    require_dir(table("url", "dir"))
