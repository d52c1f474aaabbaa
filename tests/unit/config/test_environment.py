from __future__ import annotations

import pytest

from gateway.config.environment import overlay, variables
from gateway.config.report import Report
from tests.cases import each_case


def overlaid(env, data=None):
    report = Report()
    result = overlay({} if data is None else data, env, report)
    return result, report


@each_case(
    ("name", "path"),
    [
        ("SLUICE_PORT", ("port",)),
        ("SLUICE_PUBLIC_URL", ("publicUrl",)),
        ("SLUICE_SERVICES_LISTEN", ("services", "listen")),
        ("SLUICE_SERVICES_TLS_CA", ("services", "tls", "ca")),
        ("SLUICE_SERVICES_ADDRESSES_CATALOG", ("services", "addresses", "catalog")),
        ("SLUICE_KEYS_CURRENT_SECRET", ("keys", "current", "secret")),
        ("SLUICE_KEYS_PREVIOUS_GRANT_PUBLIC_KEY", ("keys", "previous", "grantPublicKey")),
        ("SLUICE_AUTHORIZATION_BEARER_TOKEN", ("authorization", "bearerToken")),
        ("SLUICE_SSL_CERTIFICATE_FILE", ("ssl", "certificateFile")),
        ("SLUICE_LIMITS_RATE_BURST", ("limits", "rate", "burst")),
        ("SLUICE_HTTP_TRUSTED_PROXIES", ("http", "trustedProxies")),
    ],
)
def test_a_variable_is_named_after_its_place(name, path):
    assert variables()[name].path == path


def test_what_stands_in_lists_has_no_variable():
    assert not [
        name for name in variables() if "SHARES" in name or "RECIPIENTS" in name or "STORAGES" in name
    ]


def test_a_variable_wins_over_the_file_and_a_named_file_over_both(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("from a file\n\n")
    env = {
        "SLUICE_HOST": "::1",
        "SLUICE_KEYS_CURRENT_SECRET": "from a variable",
        "SLUICE_KEYS_CURRENT_SECRET_FILE": str(secret),
    }
    data = {"host": "a", "port": "1", "keys": {"current": {"secret": "from yaml", "sealing": "kept"}}}
    result, report = overlaid(env, data)
    assert result == {
        "host": "::1",
        "port": "1",
        "keys": {"current": {"secret": "from a file", "sealing": "kept"}},
    }
    assert data["host"] == "a"
    assert not report.has_faults


def test_lists_are_separated_by_commas():
    env = {"SLUICE_SERVICES_RUN": "edge, catalog,", "SLUICE_SERVICES_ADDRESSES_VENDING": "a:1,b:1"}
    result, _ = overlaid(env)
    assert result == {"services": {"run": ["edge", "catalog"], "addresses": {"vending": ["a:1", "b:1"]}}}


def test_other_variables_are_none_of_ours():
    result, report = overlaid({"PATH": "/bin", "XSLUICE_PORT": "1", "sluice_port": "1"})
    assert result == {}
    assert not report.has_faults


@each_case(
    ("name", "suggestion", "message"),
    [
        ("SLUICE_PROT", "SLUICE_PORT", "is not a known variable"),
        ("SLUICE_KEYS_SECRET", "SLUICE_KEYS_CURRENT_SECRET", "is not a known variable"),
        ("SLUICE_RECIPIENTS_0_NAME", "", "recipients can be given in the file only"),
        ("SLUICE_", "", "is not a known variable"),
    ],
)
def test_an_unknown_variable_is_a_fault_with_the_nearest_right_name(name, suggestion, message):
    _, report = overlaid({name: "hunter2"})
    (fault,) = report.faults({})
    assert (fault.path, fault.suggestion, fault.line) == (name, suggestion, None)
    assert message in fault.message
    assert "hunter2" not in str(fault)


def test_a_variable_for_a_key_without_meaning_is_a_warning():
    _, report = overlaid({"SLUICE_DELTA_TABLE_CACHE_SIZE": "10"})
    assert not report.has_faults
    assert report.warnings() == (
        "SLUICE_DELTA_TABLE_CACHE_SIZE: has no effect here: snapshots are bounded by bytes: "
        "set snapshots.memory",
    )


def test_what_kubernetes_sets_for_a_service_named_sluice_is_ignored():
    env = {
        "SLUICE_PORT": "tcp://10.0.0.1:8080",
        "SLUICE_SERVICE_HOST": "10.0.0.1",
        "SLUICE_SERVICE_PORT": "8080",
        "SLUICE_SERVICE_PORT_HTTP": "8080",
        "SLUICE_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "SLUICE_PORT_8080_TCP_ADDR": "10.0.0.1",
        "SLUICE_CATALOG_PORT": "tcp://10.0.0.2:7001",
    }
    result, report = overlaid(env)
    assert result == {}
    assert not report.has_faults
    assert len(report.warnings()) == 1
    assert "enableServiceLinks" in report.warnings()[0]


def test_a_file_that_cannot_be_read_is_a_fault_of_its_variable(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xfa")
    env = {
        "SLUICE_PUBLIC_URL_FILE": str(tmp_path / "missing"),
        "SLUICE_HOST_FILE": str(tmp_path / "binary"),
        "SLUICE_KEYS_CURRENT_SECRET_FILE": "hunter2",
    }
    _, report = overlaid(env)
    faults = {fault.path: str(fault) for fault in report.faults({})}
    assert "cannot be read (No such file or directory)" in faults["SLUICE_PUBLIC_URL_FILE"]
    assert "is not UTF-8 text" in faults["SLUICE_HOST_FILE"]
    assert "hunter2" not in faults["SLUICE_KEYS_CURRENT_SECRET_FILE"]


@pytest.mark.parametrize("data", ["text", ["list"], None])
def test_a_document_that_is_no_mapping_is_left_to_the_schema(data):
    report = Report()
    assert overlay(data, {"SLUICE_PORT": "1"}, report) == data


def test_a_section_that_is_no_mapping_is_left_to_the_schema():
    result, report = overlaid({"SLUICE_KEYS_CURRENT_SECRET": "x"}, {"keys": "abc"})
    assert result == {"keys": "abc"}
    assert not report.has_faults
