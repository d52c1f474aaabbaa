from __future__ import annotations

import pytest

from gateway.config.report import Report
from gateway.config.schema import NOT_APPLICABLE, Config
from gateway.config.unknown import known_part
from tests.cases import each_case


def pruned(data):
    report = Report()
    return known_part(Config, data, report), report


@each_case(
    ("data", "path", "suggestion"),
    [
        ({"recipients": [{"nmae": "x"}]}, "recipients[0].nmae", "name"),
        ({"recipients": [{"tokens": [{"hsh": "x"}]}]}, "recipients[0].tokens[0].hsh", "hash"),
        ({"services": {"listn": "x"}}, "services.listn", "listen"),
        ({"services": {"tls": {"cert": "x"}}}, "services.tls.cert", ""),
        ({"keys": {"current": {"completelyOther": "x"}}}, "keys.current.completelyOther", ""),
        ({"storages": [{"vender": "x"}]}, "storages[0].vender", "vendor"),
    ],
)
def test_an_unknown_key_of_our_own_section_is_a_fault(data, path, suggestion):
    _, report = pruned(data)
    (fault,) = report.faults({})
    assert (fault.path, fault.suggestion) == (path, suggestion)
    assert "is not a known key; known are " in fault.message


@each_case(
    ("data", "path", "suggestion"),
    [
        ({"prot": "1"}, "prot", "port"),
        ({"recipient": []}, "recipient", "recipients"),
        ({"shares": [{"schema": []}]}, "shares[0].schema", "schemas"),
        (
            {"shares": [{"schemas": [{"tables": [{"history_shared": "true"}]}]}]},
            "shares[0].schemas[0].tables[0].history_shared",
            "historyShared",
        ),
        ({"authorization": {"token": "x", "bearertoken": "y"}}, "authorization.bearertoken", "bearerToken"),
    ],
)
def test_a_near_miss_of_a_reference_key_is_a_fault(data, path, suggestion):
    _, report = pruned(data)
    (fault,) = report.faults({})
    assert (fault.path, fault.suggestion) == (path, suggestion)


def test_another_unknown_key_of_a_reference_section_is_a_warning():
    data, report = pruned({"somethingElse": "1", "shares": [{"name": "a", "owner": "x"}]})
    assert data == {"shares": [{"name": "a"}]}
    assert not report.has_faults
    assert report.warnings() == (
        "somethingElse: is not a known key and is ignored",
        "shares[0].owner: is not a known key and is ignored",
    )


@pytest.mark.parametrize("key", NOT_APPLICABLE)
def test_a_key_without_meaning_here_is_a_warning_that_says_what_to_do(key):
    _, report = pruned({key: "1"})
    assert not report.has_faults
    assert report.warnings() == (f"{key}: has no effect here: {NOT_APPLICABLE[key]}",)


def test_an_old_name_in_a_table_is_explained():
    _, report = pruned({"shares": [{"schemas": [{"tables": [{"cdfEnabled": "true"}]}]}]})
    assert "set historyShared" in report.warnings()[0]


def test_a_misspelt_key_is_taken_as_it_was_meant():
    data, _ = pruned({"shares": [{"nmae": "a"}], "recipients": [{"name": "b", "naem": "c"}]})
    assert data == {"shares": [{"name": "a"}], "recipients": [{"name": "b"}]}


def test_a_key_without_a_value_is_as_if_left_out():
    data, report = pruned({"shares": None, "ssl": None, "recipients": [{"name": "a", "tokens": None}]})
    assert data == {"recipients": [{"name": "a"}]}
    assert not report.has_faults


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"storages": None}, "storages"),
        ({"shares": [{"name": "a", "accessModes": None}]}, "shares[0].accessModes"),
    ],
)
def test_a_list_without_a_value_is_a_fault_where_leaving_it_out_means_something_else(data, path):
    _, report = pruned(data)
    (fault,) = report.faults({})
    assert fault.path == path
    assert "write [] for none, or remove the key" in fault.message


@each_case("data", ["x", [], {"shares": "x"}, {"shares": ["x"]}, {"keys": ["x"]}])
def test_what_is_no_section_is_left_to_the_schema(data):
    result, report = pruned(data)
    assert result == data
    assert not report.has_faults


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"recipients": [{"tokens": [{"hash": "x", "expires": None}]}]}, "recipients[0].tokens[0].expires"),
        ({"recipients": [{"disabled": None}]}, "recipients[0].disabled"),
        ({"audit": {"required": None}}, "audit.required"),
    ],
)
def test_a_key_of_our_own_section_without_a_value_is_a_fault(data, path):
    _, report = pruned(data)
    (fault,) = report.faults({})
    assert (fault.path, fault.message) == (path, "has no value; give one, or remove the key")


@pytest.mark.parametrize(
    "data",
    [{"keys": {"current": None}}, {"services": {"addresses": None}}, {"recipients": [{"tokens": None}]}],
)
def test_a_section_or_list_with_nothing_in_it_is_fine(data):
    _, report = pruned(data)
    assert not report.has_faults
    assert report.warnings() == ()


def test_a_key_of_the_reference_server_without_a_value_is_warned_of_and_left_out():
    data, report = pruned({"shares": [{"schemas": [{"tables": [{"startVersion": None}]}]}]})
    assert data == {"shares": [{"schemas": [{"tables": [{}]}]}]}
    (warning,) = report.warnings()
    assert "startVersion: has no value" in warning
