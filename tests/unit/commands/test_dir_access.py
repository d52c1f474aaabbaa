from __future__ import annotations

import pytest

from gateway.commands.dir_access import choose_storages, dir_locations, open_storage, reason
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import load
from gateway.config.schema import Config
from gateway.errors import Unavailable
from tests.fakes.object_store import FakeObjectStore

CONFIG = """\
publicUrl: https://sharing.example.com/delta-sharing
allowAnonymous: true
shares:
- name: sales
  accessModes: [dir]
  schemas:
  - name: emea
    tables:
    - {name: wide, location: s3://lake/orders, historyShared: true}
    - {name: edge, location: s3://lake/sales, historyShared: true}
    - {name: beside, location: s3://lake/sales2/orders, historyShared: true}
    - {name: inner, location: s3://lake/sales/orders, historyShared: true}
    - {name: innermost, location: s3://lake/sales/eu/orders, historyShared: true}
    - name: both
      location: s3://lake/orders-both
      historyShared: true
      auxiliaryLocations: [s3://lake/sales/eu/more, s3://lake/sales/more]
    - {name: recent, location: s3://lake/sales/recent, accessModes: [url]}
"""
WIDE, INNER, INNERMOST = (
    "- {name: wide, prefix: s3://lake, vendor: fake}\n",
    "- {name: inner, prefix: s3://lake/sales, vendor: fake}\n",
    "- {name: innermost, prefix: s3://lake/sales/eu, vendor: fake}\n",
)


@pytest.fixture(params=[(WIDE, INNER, INNERMOST), (INNERMOST, INNER, WIDE), (INNER, INNERMOST, WIDE)])
def config(request, tmp_path) -> Config:
    return loaded(tmp_path, *request.param)


def loaded(directory, *storages: str) -> Config:
    file = directory / "server.yaml"
    file.write_text(CONFIG + "storages:\n" + "".join(storages))
    return load(file, {"HOME": "/home/a"}).config


def test_location_belongs_to_the_storage_with_the_longest_prefix_in_whatever_order(config):
    found = {str(one.location): one.storage for one in dir_locations(config)}

    assert found == {
        "s3://lake/orders": "wide",
        "s3://lake/sales": "inner",
        "s3://lake/sales2/orders": "wide",
        "s3://lake/sales/orders": "inner",
        "s3://lake/sales/eu/orders": "innermost",
        "s3://lake/orders-both": "wide",
        "s3://lake/sales/eu/more": "innermost",
        "s3://lake/sales/more": "inner",
    }


def test_location_says_which_table_it_is_of(config):
    tables = {str(one.location): one.table.table for one in dir_locations(config)}

    assert tables["s3://lake/sales/eu/more"] == tables["s3://lake/orders-both"] == "both"


def test_location_on_no_storage_is_left_out(tmp_path):
    config = loaded(tmp_path, WIDE)
    outside = config.storages[0].model_copy(update={"prefix": "s3://other"})  # type: ignore[index]

    assert list(dir_locations(config.model_copy(update={"storages": (outside,)}))) == []


def test_storages_are_chosen_by_name_in_the_order_of_the_file(tmp_path):
    config = loaded(tmp_path, WIDE, INNER, INNERMOST)

    def chosen(*names: str) -> list[str]:
        return [entry.name for entry in choose_storages(config, names)]

    assert chosen() == ["wide", "inner", "innermost"]
    assert chosen("innermost", "wide") == ["wide", "innermost"]
    with pytest.raises(ConfigError, match="there is no storage 'iner'"):
        chosen("wide", "iner")


async def test_storage_is_opened_alone_and_as_its_own_entry(config):
    opened = FakeObjectStore()
    (inner,) = choose_storages(config, ["inner"])

    async with open_storage(config, inner, {"fake": opened}.__getitem__) as storage:
        assert (storage.name, str(storage.prefix)) == ("inner", "s3://lake/sales")


def test_reason_holds_no_words_of_an_sdk():
    fault = Fault(path="storages[0].options.a", message="unknown option", suggestion="b")

    # Not which storage: it is the only one in the configuration that is opened.
    assert reason(ConfigError([fault])) == "options.a: unknown option; did you mean b?"
    assert reason(ConfigError([fault, fault])).count("unknown option") == 2
    assert reason(Unavailable("no answer")) == "no answer"
    assert "hush" not in reason(ValueError("hush"))
