from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.adapters.catalog_yaml import YamlCatalog, build_index
from gateway.config.faults import ConfigError
from gateway.config.schema import Config
from gateway.domain.name import TableName
from gateway.domain.principal import Principal, PrincipalKind
from tests.cases import each_case

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
CONTENT: dict[str, Any] = {
    "shares": [
        {
            "name": name,
            "comment": "c",
            "properties": {"owner": "us", "tier": "1"},
            "schemas": [
                {"name": schema, "tables": [{"name": f"t{n}", "location": f"/d/{n}"} for n in range(3)]}
                for schema in ("one", "two")
            ],
        }
        for name in ("granted", "ungranted")
    ],
    "recipients": [
        {"name": "acme", "shares": ["granted"], "tokens": [{"hash": f"sha256:{'1' * 64}"}]},
        {"name": "other", "shares": ["granted", "ungranted"]},
    ],
    "principals": [{"name": "service", "certificate": "spiffe://x", "shares": ["granted"]}],
}
ACME = Principal(name="acme", kind=PrincipalKind.RECIPIENT, shares=frozenset({"granted"}))
# Pinned: replicas of different builds must agree.
GENERATION = "0cbf6410130613b7"


def index_of(content: Mapping[str, Any]):
    return build_index(Config.model_validate(content))


def changed(change) -> dict[str, Any]:
    content = copy.deepcopy(CONTENT)
    change(content)
    return content


def test_ends_of_tokens_are_told_of_recipients_that_are_let_in():
    ends = ["2030-02-01T00:00:00Z", "2030-03-01T00:00:00Z"]
    tokens = [
        {"hash": f"sha256:{str(number) * 64}", "expires": end} for number, end in enumerate(ends, start=2)
    ]
    gone = {"name": "gone", "disabled": True, "tokens": [{"hash": f"sha256:{'9' * 64}"}]}

    def change(content: dict[str, Any]) -> None:
        content["recipients"] += [{"name": "beta", "tokens": tokens}, gone]

    assert YamlCatalog(index_of(changed(change))).token_expiries() == {
        "acme": [None],
        "beta": [datetime.fromisoformat(end) for end in ends],
    }


def shuffle(content):
    for share in content["shares"]:
        for schema in share["schemas"]:
            random.Random(1).shuffle(schema["tables"])
        share["schemas"].reverse()
        share["properties"] = dict(reversed(share["properties"].items()))
    for section in content.values():
        section.reverse()


def test_the_generation_of_a_content_is_the_same_in_every_process():
    assert index_of(CONTENT).generation == GENERATION


def test_the_generation_does_not_depend_on_the_order_of_the_file():
    assert index_of(changed(shuffle)).generation == GENERATION


def test_what_is_said_and_what_is_meant_anyway_have_one_generation():
    said = changed(lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(accessModes=["url"]))
    assert index_of(said).generation == GENERATION


def test_a_new_token_does_not_change_the_generation():
    tokens = [{"hash": f"sha256:{'2' * 64}"}]
    assert index_of(changed(lambda c: c["recipients"][0].update(tokens=tokens))).generation == GENERATION


@each_case(
    "change",
    [
        lambda c: c["shares"].pop(),
        lambda c: c["shares"][0].update(comment="d"),
        lambda c: c["shares"][0].update(displayName="d"),
        lambda c: c["shares"][0].update(id="d"),
        lambda c: c["shares"][0]["properties"].update(owner="them"),
        lambda c: c["shares"][0]["schemas"].append({"name": "empty"}),
        lambda c: c["shares"][0]["schemas"][0].update(name="three"),
        lambda c: c["shares"][0]["schemas"][0]["tables"].pop(),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(location="/d/9"),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(location="file:///d/0"),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(auxiliaryLocations=["/e"]),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(id="d"),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(historyShared=True),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(startVersion=1),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(historyShared=True, accessModes=["dir"]),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(r2Credentials=True),
        lambda c: c["shares"][0]["schemas"][0]["tables"][0].update(freshness="5s"),
        lambda c: c.update(snapshots={"freshness": "5s"}),
        lambda c: c["recipients"][0].update(shares=[]),
        lambda c: c["recipients"][0].update(shares="*"),
        lambda c: c["recipients"][0].update(disabled=True),
        lambda c: c["recipients"][0].update(revokedAt="2030-01-01T00:00:00Z"),
        lambda c: c["recipients"].pop(),
        lambda c: c["principals"][0].update(permissions=["edge"]),
        lambda c: c.update(allowAnonymous=True),
    ],
)
def test_any_other_change_changes_the_generation(change):
    assert index_of(changed(change)).generation != GENERATION


async def test_a_reload_replaces_everything_at_once():
    catalog = YamlCatalog(index_of(CONTENT))
    assert await catalog.find_by_token(b"\x11" * 32, NOON) == ACME
    catalog.replace(index_of({"shares": [{"name": "new"}], "recipients": [{"name": "acme", "shares": "*"}]}))
    assert await catalog.find_by_token(b"\x11" * 32, NOON) is None
    assert await catalog.find_share(ACME, "granted") is None
    acme = await catalog.find_recipient("acme")
    assert acme is not None
    assert [share.name for share in await catalog.list_shares(acme, after="", limit=9)] == ["new"]
    assert catalog.generation != GENERATION


def test_all_faults_of_shares_and_principals_are_raised_together():
    content = changed(
        lambda c: (
            c["shares"][0]["schemas"][0]["tables"][0].update(location="nowhere"),
            c["recipients"].append({"name": "service"}),
        )
    )
    with pytest.raises(ConfigError) as caught:
        index_of(content)
    assert [fault.path for fault in caught.value.faults] == [
        "shares[0].schemas[0].tables[0].location",
        "principals[0]",
    ]


def test_principals_with_the_same_grants_share_one_list():
    content = changed(lambda c: c["recipients"].append({"name": "third", "shares": ["GRANTED"]}))
    index = index_of(content)
    acme, third = index.principals.recipients["acme"], index.principals.recipients["third"]
    assert index.visible_shares(acme) is index.visible_shares(third)
    assert len(index.visible) == 2


class CountedMapping(dict[Any, Any]):
    """A mapping that counts its look-ups."""

    def __init__(self, entries: Mapping[Any, Any]) -> None:
        super().__init__(entries)
        self.lookups: Counter[str] = Counter()

    def get(self, key, default=None):
        self.lookups["get"] += 1
        return super().get(key, default)

    def __getitem__(self, key):
        self.lookups["[]"] += 1
        return super().__getitem__(key)

    def __contains__(self, key):
        self.lookups["in"] += 1
        return super().__contains__(key)


CALLS = {
    "find_share": lambda catalog, share: catalog.find_share(ACME, share),
    "find_table": lambda catalog, share: catalog.find_table(ACME, TableName(share, "one", "t1")),
    "list_schemas": lambda catalog, share: catalog.list_schemas(ACME, share, after="", limit=9),
    "list_tables": lambda catalog, share: catalog.list_tables(ACME, share, "one", after="", limit=9),
    "list_all_tables": lambda catalog, share: catalog.list_all_tables(ACME, share, after=("", ""), limit=9),
}


@each_case("call", CALLS.values(), ids=CALLS)
async def test_what_is_not_granted_is_not_even_looked_up_like_what_is_not_there(call):
    async def lookups(share: str) -> int:
        index = index_of(CONTENT)
        shares, tables = CountedMapping(index.shares), CountedMapping(index.tables)
        found = await call(YamlCatalog(replace(index, shares=shares, tables=tables)), share)
        assert (found is None) == (share != "granted")
        return shares.lookups.total() + tables.lookups.total()

    assert await lookups("ungranted") == await lookups("missing") == 0
    assert await lookups("granted") == 1


def test_that_there_were_services_is_remembered_when_a_reload_removes_the_last():
    without = build_index(Config.model_validate(CONTENT | {"principals": []}))
    catalog = YamlCatalog(without)
    assert not catalog.has_had_services

    catalog.replace(build_index(Config.model_validate(CONTENT)))
    assert catalog.has_had_services
    catalog.replace(without)
    assert catalog.has_had_services
    assert not YamlCatalog(without).has_had_services
