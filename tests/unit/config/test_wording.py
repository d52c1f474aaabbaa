from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.config.faults import Fault
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.config.wording import report_errors
from tests.cases import each_case

SERVICES = "must be one of edge, catalog, snapshot, presign or vending"
MAPPING = "must be a mapping of keys to values"


def faults_of(data) -> tuple[Fault, ...]:
    report = Report()
    with pytest.raises(ValidationError) as caught:
        Config.model_validate(data)
    report_errors(caught.value.errors(), data, report)
    return report.faults({})


def share(**keys):
    return {"shares": [{"name": "a", **keys}]}


def rate(per_second):
    return {"limits": {"rate": {"requestsPerSecond": per_second, "burst": "1"}}}


@each_case(
    ("data", "path", "message", "found"),
    [
        ({"shares": [{}]}, "shares[0].name", "is missing", ""),
        ({"port": "eighty"}, "port", "must be a whole number", "'eighty'"),
        ({"port": "8.5"}, "port", "must be a whole number", "'8.5'"),
        ({"port": "9" * 5000}, "port", "must be a whole number", f"'{'9' * 80}…'"),
        ({"port": "70000"}, "port", "must be at most 65535", "'70000'"),
        ({"host": ["a"]}, "host", "must be a text", "a list of 1"),
        ({"host": True}, "host", "must be a text", "true"),
        ({"allowAnonymous": "perhaps"}, "allowAnonymous", "must be true or false", "'perhaps'"),
        ({"shares": "x"}, "shares", "must be a list", "'x'"),
        ({"shares": ["x"]}, "shares[0]", MAPPING, "'x'"),
        ({"keys": "hunter2"}, "keys", MAPPING, "a text of 7 characters"),
        ("x", "", MAPPING, "'x'"),
        (share(properties="x"), "shares[0].properties", MAPPING, "'x'"),
        (share(displayName=256 * "x"), "shares[0].displayName", "must have at most 255 characters", None),
        (
            share(properties={str(number): "" for number in range(51)}),
            "shares[0].properties",
            "must have at most 50 entries",
            "a mapping",
        ),
        (
            {"recipients": [{"name": ""}]},
            "recipients[0].name",
            "must have at least 1 character(s)",
            "an empty text",
        ),
        (rate("nan"), "limits.rate.requestsPerSecond", "must be a finite number", "'nan'"),
        (rate("0"), "limits.rate.requestsPerSecond", "must be more than 0.0", "'0'"),
        (rate("x"), "limits.rate.requestsPerSecond", "must be a number", "'x'"),
        (
            {"services": {"addresses": {"catalog": {}}}},
            "services.addresses.catalog",
            "must be an address such as dns:///catalog:9400, or a list of addresses",
            "a mapping",
        ),
        (
            {"recipients": [{"name": "a", "shares": "b"}]},
            "recipients[0].shares",
            'must be a list of names of shares, or "*" for all of them',
            "'b'",
        ),
    ],
)
def test_each_kind_of_error_has_plain_words(data, path, message, found):
    (fault,) = faults_of(data)
    assert (fault.path, fault.message) == (path, message)
    assert found is None or fault.found == found


@each_case(
    ("data", "path", "message", "suggestion"),
    [
        ({"log": {"level": "inof"}}, "log.level", "must be one of debug, info, warning or error", "info"),
        ({"http": {"compression": "gzip"}}, "http.compression", "must be one of auto or off", ""),
        ({"services": {"run": ["catlog"]}}, "services.run[0]", SERVICES, "catalog"),
        ({"services": {"run": ["x"]}}, "services.run[0]", SERVICES, ""),
        ({"services": {"addresses": {"catlog": "x"}}}, "services.addresses.catlog", SERVICES, "catalog"),
        (share(accessModes=["ulr"]), "shares[0].accessModes[0]", "must be one of url or dir", "url"),
    ],
)
def test_a_choice_names_what_there_is_and_what_was_probably_meant(data, path, message, suggestion):
    (fault,) = faults_of(data)
    assert (fault.path, fault.message, fault.suggestion) == (path, message, suggestion)


def test_a_token_in_the_place_of_its_hash_is_not_shown():
    (fault,) = faults_of({"recipients": [{"name": "a", "tokens": [{"hash": "hunter2"}]}]})
    assert "64 lower-case hexadecimal digits" in fault.message
    assert "hunter2" not in str(fault)


def test_all_errors_are_told_at_once():
    assert len(faults_of({"port": "x", "shares": [{}, {"name": []}], "grace": ""})) == 4
