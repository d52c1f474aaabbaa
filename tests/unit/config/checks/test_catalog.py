from __future__ import annotations

import pytest

from tests.cases import each_case

DIR_TABLE = "historyShared: true, accessModes: [url, dir]"


def tables(*entries: str) -> str:
    lines = "\n".join(f"    - {{{entry}}}" for entry in entries)
    return f"shares:\n- name: s\n  schemas:\n  - name: c\n    tables:\n{lines}\n"


@each_case(
    ("text", "path", "message"),
    [
        ("shares: [{name: 'a b'}]", "shares[0].name", "must not contain ' '"),
        ("shares: [{name: ''}]", "shares[0].name", "must not be empty"),
        ("shares: [{name: '*'}]", "shares[0].name", "stands for all shares"),
        (f"shares: [{{name: {'x' * 256}}}]", "shares[0].name", "at most 255 characters"),
        ("shares: [{name: a, schemas: [{name: b.c}]}]", "shares[0].schemas[0].name", "must not contain '.'"),
        (tables("name: a/b, location: /x"), "shares[0].schemas[0].tables[0].name", "must not contain '/'"),
    ],
)
def test_names_follow_the_protocol(faults_of, text, path, message):
    faults = faults_of(text)
    assert list(faults) == [path]
    assert message in faults[path].message


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("shares: [{name: Sales}, {name: sALES}]", "shares[1].name"),
        ("shares: [{name: s, schemas: [{name: A}, {name: a}]}]", "shares[0].schemas[1].name"),
        (tables("name: T, location: /x", "name: t, location: /y"), "shares[0].schemas[0].tables[1].name"),
    ],
)
def test_names_that_differ_in_case_only_are_duplicates(faults_of, text, path):
    faults = faults_of(text)
    assert list(faults) == [path]
    assert "upper and lower case are the same" in faults[path].message


def test_the_same_name_in_another_schema_is_fine(faults_of):
    table = "{name: t, location: /x}"
    schemas = f"[{{name: a, tables: [{table}]}}, {{name: b, tables: [{table}]}}]"
    assert not faults_of(f"shares: [{{name: s, schemas: {schemas}}}, {{name: r, schemas: {schemas}}}]")


def test_numbers_and_words_are_names_as_they_are_written(read_text):
    text = "allowAnonymous: true\n" + tables("name: 007, location: /x", "name: no, location: /y")
    draft = read_text(text)
    assert not draft.faults
    assert [table.name for table in draft.config.shares[0].schemas[0].tables] == ["007", "no"]


def test_ids_are_unique(faults_of):
    faults = faults_of("shares: [{name: a, id: x}, {name: b, id: x}, {name: c}, {name: d}]")
    assert list(faults) == ["shares[1].id"]
    faults = faults_of(tables("name: a, location: /a, id: x", "name: b, location: /b, id: x"))
    assert list(faults) == ["shares[0].schemas[0].tables[1].id"]
    assert "another table" in faults["shares[0].schemas[0].tables[1].id"].message


def test_a_table_may_be_shared_twice_under_one_id(faults_of):
    assert not faults_of(
        tables("name: a, location: 's3://b/a', id: x", "name: b, location: 's3a://b/a/', id: x")
    )


def test_locations_are_parsed(faults_of):
    faults = faults_of(
        tables("name: a, location: relative/path", "name: b, location: /b, auxiliaryLocations: [/c, /d/../e]")
    )
    assert list(faults) == [
        "shares[0].schemas[0].tables[0].location",
        "shares[0].schemas[0].tables[1].auxiliaryLocations[1]",
    ]


def test_with_storages_every_location_is_covered(faults_of):
    storages = "storages: [{name: lake, prefix: /data, vendor: local}]\n"
    entry = "name: a, location: /data/a, auxiliaryLocations: [/data/b, /elsewhere]"
    faults = faults_of(storages + tables(entry, "name: b, location: /database/b"))
    assert {path: fault.found for path, fault in faults.items()} == {
        "shares[0].schemas[0].tables[0].auxiliaryLocations[1]": "'/elsewhere'",
        "shares[0].schemas[0].tables[1].location": "'/database/b'",
    }


def test_an_empty_list_of_storages_covers_nothing(faults_of):
    assert faults_of("storages: []\n" + tables("name: a, location: /a"))


def test_without_storages_locations_are_left_to_the_vendors(faults_of):
    assert not faults_of(tables("name: a, location: 's3://anything/a'"))


def test_storages_that_cannot_be_read_are_not_blamed_on_the_tables(faults_of):
    faults = faults_of("storages: [{name: lake, vendor: local}]\n" + tables("name: a, location: /a"))
    assert list(faults) == ["storages[0].prefix"]


@pytest.mark.parametrize(
    "entry",
    ["accessModes: [dir]", "historyShared: true, startVersion: 3, accessModes: [url, dir]"],
)
def test_dir_access_needs_the_whole_history(faults_of, entry):
    storages = "storages: [{name: lake, prefix: /data, vendor: local}]\n"
    assert not faults_of(storages + tables(f"name: a, location: /data/a, {DIR_TABLE}"))
    faults = faults_of(storages + tables(f"name: a, location: /data/a, {entry}"))
    assert list(faults) == ["shares[0].schemas[0].tables[0].accessModes"]
    assert "historyShared: true and startVersion: 0" in str(faults)


def test_dir_access_of_a_share_needs_the_history_of_its_tables(faults_of):
    text = tables("name: a, location: /data/a", "name: b, location: /data/b, accessModes: [url]")
    text = text.replace("- name: s\n", "- name: s\n  accessModes: [url, dir]\n")
    faults = faults_of("storages: [{name: lake, prefix: /data, vendor: local}]\n" + text)
    assert list(faults) == ["shares[0].schemas[0].tables[0].accessModes"]


def test_dir_access_needs_a_storage(faults_of):
    faults = faults_of(tables(f"name: a, location: /data/a, {DIR_TABLE}"))
    assert "needs an entry in storages" in faults["shares[0].schemas[0].tables[0].accessModes"].message


@pytest.mark.parametrize("modes", ["[]", "[url, url]"])
def test_access_modes_name_something_once(faults_of, modes):
    assert list(faults_of(f"shares: [{{name: a, accessModes: {modes}}}]")) == ["shares[0].accessModes"]
    path = "shares[0].schemas[0].tables[0].accessModes"
    assert list(faults_of(tables(f"name: a, location: /a, accessModes: {modes}"))) == [path]


def rooted(storage: str = "", modes: str = DIR_TABLE) -> str:
    return f"storages: [{{name: b, prefix: 's3://b', vendor: aws{storage}}}]\n" + tables(
        f"name: a, location: 's3://b/', auxiliaryLocations: ['s3a://b'], {modes}"
    )


def test_a_root_is_not_opened_by_dir_access_unless_its_storage_allows_it(faults_of):
    faults = faults_of(rooted())
    assert list(faults) == [
        "shares[0].schemas[0].tables[0].location",
        "shares[0].schemas[0].tables[0].auxiliaryLocations[0]",
    ]
    assert "set storages[0].allowRoot: true" in str(faults)
    assert not faults_of(rooted(storage=", allowRoot: true"))
    assert not faults_of(rooted(modes="accessModes: [url]"))


def test_an_overlap_of_shares_is_warned_of(read_text):
    storages = "storages: [{name: b, prefix: 's3://b', vendor: aws}]\n"
    outer = tables(f"name: a, location: 's3://b/a', {DIR_TABLE}")
    inner = tables("name: a, location: 's3://b/a/inner'").replace("name: s", "name: other")
    draft = read_text("allowAnonymous: true\n" + storages + outer + inner.removeprefix("shares:\n"))
    assert not draft.faults
    assert draft.warnings == (
        "shares[0].schemas[0].tables[0].accessModes: a dir credential for s.c.a opens other.c.a of another "
        "share too, which lies below it: move one of them, or share the outer one by url only",
    )
