from __future__ import annotations

import pytest

from gateway.domain.location import parse_location
from tests.cases import each_case
from tests.unit.vendors.azure.doubles import options
from vendors.azure.limits import opens_container, scope_faults, spelling_faults

TABLE = parse_location("abfss://c@lake.dfs.core.windows.net/t")
ROOT = parse_location("abfss://c@lake.dfs.core.windows.net")
BLOB_SPELLINGS = [
    parse_location("wasbs://c@lake.blob.core.windows.net/t"),
    parse_location("wasb://c@lake.blob.core.windows.net/t"),
    parse_location("WASBS://c@lake.dfs.core.windows.net/t"),
    parse_location("abfss://c@lake.Blob.core.windows.net/t"),
]


def test_directory_of_a_hierarchical_account_has_a_credential():
    given = options()

    assert scope_faults(given, TABLE) == []
    assert spelling_faults(given, TABLE) == []
    assert not opens_container(given, TABLE)


@pytest.mark.parametrize(
    ("namespace", "words"),
    [(False, "containerScope: accept"), (None, "hierarchicalNamespace: true or false")],
)
def test_flat_or_unknown_account_is_refused(namespace, words):
    (fault,) = scope_faults(options(hierarchicalNamespace=namespace), TABLE)

    assert words in fault


@pytest.mark.parametrize("namespace", [True, False, None])
def test_accepted_container_scope_opens_containers(namespace):
    given = options(hierarchicalNamespace=namespace, containerScope="accept")

    assert scope_faults(given, TABLE) == []
    assert opens_container(given, TABLE)


@pytest.mark.parametrize("namespace", [True, False, None])
def test_root_is_a_container_whatever_the_account(namespace):
    given = options(hierarchicalNamespace=namespace)

    assert scope_faults(given, ROOT) == []
    assert opens_container(given, ROOT)


@each_case("location", BLOB_SPELLINGS, ids=str)
def test_spelling_of_the_blob_endpoint_is_refused_unless_container_scope_is_accepted(location):
    (fault,) = spelling_faults(options(), location)

    assert "blob endpoint" in fault
    assert spelling_faults(options(containerScope="accept"), location) == []


@each_case("location", BLOB_SPELLINGS, ids=str)
def test_what_can_be_scoped_does_not_depend_on_the_spelling(location):
    assert scope_faults(options(), location) == scope_faults(options(), TABLE)


def test_path_that_looks_like_a_blob_host_is_not_one():
    location = parse_location("abfss://c@lake.dfs.core.windows.net/x.blob.y/wasbs:")

    assert spelling_faults(options(), location) == []


def test_account_key_makes_no_credential_for_a_directory():
    given = options(identity={"kind": "accountKey", "accountKey": {"value": "a2V5"}}, containerScope="accept")

    for location in (TABLE, ROOT):
        (fault,) = scope_faults(given, location)
        assert "another kind of identity" in fault


def test_host_that_is_no_account_is_refused_even_where_container_scope_is_accepted():
    location = parse_location("abfss://c@onelake.dfs.fabric.microsoft.com/t")

    assert scope_faults(options(containerScope="accept"), location)
