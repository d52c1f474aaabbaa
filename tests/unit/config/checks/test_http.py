from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.checks.http import find_url_fault
from tests.cases import each_case


@pytest.mark.parametrize("host", ["'::'", "0.0.0.0", "localhost", "a.example.com"])
def test_a_host_is_a_name_or_an_address(faults_of, host):
    assert not faults_of(f"host: {host}")


@pytest.mark.parametrize("host", ["''", "'[::1]'", "'a b'", "'127.0.0.1:80'", "http://a"])
def test_another_host_is_refused(faults_of, host):
    assert list(faults_of(f"host: {host}")) == ["host"]


@pytest.mark.parametrize("endpoint", ["/delta-sharing", "/a/b.c/~d", "/", "''"])
def test_an_endpoint_begins_with_a_slash(faults_of, endpoint):
    assert not faults_of(f"endpoint: {endpoint}")


@each_case("endpoint", ["delta", "/a/", "//", "/a//b", "/a?b", "'/{a}'", "/a b", "/../a", "/a/.", "/ä"])
def test_another_endpoint_is_refused(faults_of, endpoint):
    assert list(faults_of(f"endpoint: {endpoint}")) == ["endpoint"]


@pytest.mark.parametrize(
    "url",
    [
        "https://sharing.example.com/delta-sharing",
        "http://127.0.0.1:8080/",
        "https://[::1]:8443/a",
        "https://a",
    ],
)
def test_a_public_url_is_http_or_https(faults_of, url):
    assert not faults_of(f"publicUrl: {url}")


@each_case(
    ("url", "message"),
    [
        ("ftp://a", "must be an http or https URL"),
        ("sharing.example.com", "must be an http or https URL"),
        ("https://", "must be an http or https URL"),
        ("https://a:99999/", "must be an http or https URL"),
        ("https://a b/", "must be an http or https URL"),
        ("https://[::1/", "must be an http or https URL"),
        ("https://a/?b=c", "query or fragment"),
        ("https://a/#b", "query or fragment"),
        ("https://user:hunter2@a/", "user or password"),
        ("https://a/b//c", "path of letters"),
        ("https://a/b%20c", "path of letters"),
    ],
)
def test_another_public_url_is_refused(faults_of, url, message):
    faults = faults_of(f"publicUrl: '{url}'")
    assert list(faults) == ["publicUrl"]
    assert message in faults["publicUrl"].message
    assert "hunter2" not in str(faults)


@given(st.text() | st.text().map(lambda text: f"https://{text}"))
def test_no_text_breaks_the_check_of_urls(url):
    assert find_url_fault(url).startswith("must ") or url.startswith("http")


@pytest.mark.parametrize("listen", ["9401", "a", "':9401'", "''", "unix:/a"])
def test_metrics_have_a_host_and_port(faults_of, listen):
    assert list(faults_of(f"metrics: {{listen: {listen}}}")) == ["metrics.listen"]


def test_metrics_have_a_port_of_their_own(faults_of):
    faults = faults_of("port: 9401")
    assert list(faults) == ["metrics.listen"]
    assert "choose another port" in faults["metrics.listen"].message
    assert not faults_of("port: 0\nmetrics: {listen: '127.0.0.1:0'}")


def test_proxies_are_addresses_or_networks(faults_of):
    faults = faults_of("http: {trustedProxies: [10.0.0.0/8, '::1', 10.0.0.1/8, proxy]}")
    assert list(faults) == ["http.trustedProxies[2]", "http.trustedProxies[3]"]


@pytest.mark.parametrize(
    ("network", "warned"), [("0.0.0.0/0", True), ("'::/0'", True), ("10.0.0.0/8", False)]
)
def test_everybody_as_a_proxy_is_warned_of(read_text, network, warned):
    draft = read_text(f"http: {{trustedProxies: [{network}]}}")
    assert any(warning.startswith("http.trustedProxies[0]") for warning in draft.warnings) is warned


def test_tls_needs_files_that_can_be_read(faults_of, tmp_path):
    pem = tmp_path / "a.pem"
    pem.write_text("x")
    assert not faults_of(f"ssl: {{certificateFile: {pem}, certificateKeyFile: {pem}}}")
    assert not faults_of("ssl: {selfSigned: true}")
    faults = faults_of(f"ssl: {{certificateFile: {tmp_path}/b, certificatePasswordFile: hunter2}}")
    assert list(faults) == ["ssl.certificateFile", "ssl.certificateKeyFile", "ssl.certificatePasswordFile"]
    assert "cannot be read (No such file or directory)" in faults["ssl.certificateFile"].message
    assert "is missing" in faults["ssl.certificateKeyFile"].message
    assert "hunter2" not in str(faults)


@pytest.mark.parametrize("workers", [0, 65, "many"])
def test_workers_are_at_least_one_and_not_too_many(faults_of, workers):
    assert list(faults_of(f"http: {{workers: {workers}}}")) == ["http.workers"]


@pytest.mark.parametrize(
    "run", ["[edge, catalog]", "[catalog]", "[edge, catalog, snapshot, presign, vending]"]
)
def test_several_workers_are_for_an_edge_alone(faults_of, run):
    faults = faults_of(f"http: {{workers: 2}}\nservices: {{run: {run}, listen: 127.0.0.1:7001}}")
    assert "set services.run to [edge]" in faults["http.workers"].message
    assert "http.workers" not in faults_of("http: {workers: 2}\nservices: {run: [edge]}")
    assert "http.workers" not in faults_of(f"http: {{workers: 1}}\nservices: {{run: {run}}}")


def test_a_broken_list_of_services_is_not_blamed_on_workers(faults_of):
    assert "http.workers" not in faults_of("http: {workers: 2}\nservices: {run: [egde]}")


def test_workers_need_a_certificate_that_all_of_them_have(faults_of):
    text = "http: {workers: 2}\nservices: {run: [edge]}\nssl: {selfSigned: true}"
    assert "ssl.selfSigned" in faults_of(text)["http.workers"].message


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("host: 0.0.0.0", True),
        ("host: '::'", True),
        ("host: 127.0.0.1", False),
        ("host: share.example.com", False),
        ("host: 0.0.0.0\npublicUrl: https://share.example.com", False),
        ("host: 0.0.0.0\nservices: {run: [catalog], listen: '127.0.0.1:1'}", False),
    ],
)
def test_all_addresses_without_a_public_one_are_warned_of(read_text, text, warned):
    assert any(warning.startswith("publicUrl: is missing") for warning in read_text(text).warnings) is warned


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("evaluateJsonPredicateHints: false", "evaluateJsonPredicateHints"),
        ("evaluateJsonPredicateHintsV2: false", "evaluateJsonPredicateHintsV2"),
        ("evaluateJsonPredicateHints: false\nevaluateJsonPredicateHintsV2: false", None),
        ("evaluateJsonPredicateHints: true", None),
    ],
)
def test_one_of_the_two_keys_for_json_hints_is_warned_of_when_it_changes_nothing(read_text, text, named):
    warnings = [warning for warning in read_text(text).warnings if "JSON hints" in warning]
    assert [warning.split(": ")[0] for warning in warnings] == ([named] if named else [])
    assert all("set both to false" in warning for warning in warnings)


@pytest.mark.parametrize(("seconds", "is_warned_of"), [(60, True), (1201, True), (1499, True), (1500, False)])
def test_a_life_of_urls_that_clients_take_for_over_is_warned_of(read_text, seconds, is_warned_of):
    warnings = read_text(f"preSignedUrlTimeoutSeconds: {seconds}").warnings

    assert any("over and over" in warning for warning in warnings) is is_warned_of
