from __future__ import annotations

import pytest

from gateway.config.schema import ServiceName
from tests.cases import each_case

HASH = "sha256:" + "0" * 64
TOKEN = f"tokens: [{{hash: '{HASH}'}}]"


def test_recipients_have_names_of_their_own(faults_of):
    faults = faults_of("recipients: [{name: Acme}, {name: aCME}, {name: ' x'}, {name: \"a\\nb\"}]")
    assert list(faults) == ["recipients[1].name", "recipients[2].name", "recipients[3].name"]


def test_a_token_belongs_to_one_recipient(faults_of):
    faults = faults_of(f"recipients: [{{name: a, {TOKEN}}}, {{name: b, {TOKEN}}}]")
    assert list(faults) == ["recipients[1].tokens[0].hash"]
    assert "recipients[0].tokens[0].hash already" in str(faults)
    assert HASH not in str(faults)


def test_an_identity_belongs_to_one_recipient(faults_of):
    identity = "identities: [{issuer: 'https://i', subject: s}]"
    faults = faults_of(f"recipients: [{{name: a, {identity}}}, {{name: b, {identity}}}]")
    assert list(faults) == ["recipients[1].identities[0]"]


def test_granted_shares_exist(faults_of):
    faults = faults_of("shares: [{name: Sales}]\nrecipients: [{name: a, shares: [sales, slaes, other]}]")
    assert {path: fault.suggestion for path, fault in faults.items()} == {
        "recipients[0].shares[1]": "Sales",
        "recipients[0].shares[2]": "",
    }


@pytest.mark.parametrize("shares", ['"*"', '["*"]'])
def test_a_star_is_every_share(faults_of, shares):
    assert not faults_of(f"recipients: [{{name: a, shares: {shares}}}]")


def test_a_star_stands_alone(faults_of):
    faults = faults_of('shares: [{name: s}]\nrecipients: [{name: a, shares: [s, "*"]}]')
    assert list(faults) == ["recipients[0].shares"]


def test_shares_that_cannot_be_read_are_not_blamed_on_recipients(faults_of):
    assert list(faults_of("shares: [{}]\nrecipients: [{name: a, shares: [s]}]")) == ["shares[0].name"]


def test_a_platform_service_can_be_recognised(faults_of):
    faults = faults_of("""
principals:
- {name: a}
- {name: b, certificate: spiffe://x/b}
- {name: B, certificate: spiffe://x/b}
- {name: c, publicKeys: [hunter2]}
""")
    assert list(faults) == [
        "principals[0]",
        "principals[2].name",
        "principals[2].certificate",
        "principals[3].publicKeys[0]",
    ]
    assert "neither certificate nor publicKeys" in faults["principals[0]"].message


@pytest.mark.parametrize(
    ("token", "message"),
    [("''", "must not be empty"), ("'a b'", "ASCII without spaces"), ("tökentökentöken", "ASCII")],
)
def test_a_bearer_token_can_be_sent(faults_of, token, message):
    faults = faults_of(f"authorization: {{bearerToken: {token}}}", complete=False)
    assert list(faults) == ["authorization.bearerToken"]
    assert message in str(faults)
    assert "töken" not in str(faults)


def test_an_empty_bearer_token_from_the_environment_is_refused(faults_of):
    faults = faults_of("", {"SLUICE_AUTHORIZATION_BEARER_TOKEN": ""}, complete=False)
    assert list(faults) == ["SLUICE_AUTHORIZATION_BEARER_TOKEN"]


def test_a_short_bearer_token_is_a_warning(read_text):
    draft = read_text("authorization: {bearerToken: hunter2}")
    assert not draft.faults
    assert draft.warnings == (
        "authorization.bearerToken: is short enough to be guessed, and opens every share",
    )


@pytest.mark.parametrize("text", ["", "recipients: []", "recipients: [{name: a}]", "authorization:"])
def test_without_authorization_nothing_starts(faults_of, text):
    faults = faults_of(text, complete=False)
    assert list(faults) == ["recipients"]
    assert "authorization.bearerToken" in faults["recipients"].message
    assert "allowAnonymous: true" in faults["recipients"].message


@each_case(
    "text",
    [
        "authorization: {bearerToken: 0123456789abcdef}",
        f"recipients: [{{name: a, {TOKEN}}}]",
        "recipients: [{name: a, identities: [{issuer: i, subject: s}]}]",
        "principals: [{name: a, certificate: x}]",
        "allowAnonymous: true",
        "allowAnonymous: true\nhost: localhost",
        "allowAnonymous: true\nhost: '::1'",
        "allowAnonymous: true\nservices: {listen: 'unix:/run/sluice.sock'}",
    ],
)
def test_with_it_or_with_leave_everything_does(faults_of, text):
    assert not faults_of(text, complete=False)


def test_a_process_without_the_catalog_needs_no_recipients(faults_of):
    run = [name for name in ServiceName if name != "catalog"]
    faults = faults_of("", {"SLUICE_SERVICES_RUN": ",".join(run)}, complete=False)
    assert "recipients" not in faults


def test_everybody_is_not_served_through_an_edge_elsewhere(faults_of):
    text = "allowAnonymous: true\nservices: {listen: '0.0.0.0:7001', tls: {certificate: a, key: b, ca: c}}"
    faults = faults_of(text, complete=False)
    assert "services.listen on loopback only" in faults["allowAnonymous"].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host: 0.0.0.0", "loopback host only"),
        ("host: example.com", "loopback host only"),
        ("authorization: {bearerToken: 0123456789abcdef}", "remove it, or recipients"),
        (f"recipients: [{{name: a, {TOKEN}}}]", "remove it, or recipients"),
    ],
)
def test_everybody_is_served_on_loopback_only_and_without_recipients(faults_of, text, message):
    faults = faults_of(f"allowAnonymous: true\n{text}", complete=False)
    assert list(faults) == ["allowAnonymous"]
    assert message in faults["allowAnonymous"].message


def test_methods_of_a_platform_service_exist(faults_of):
    faults = faults_of("""
principals:
- {name: a, certificate: a, methods: [Catalog.Resolve, Vending]}
- {name: b, certificate: b, methods: [Catalog.Resolv, catalog, Cat/Resolve, '*']}
- {name: c, certificate: c, methods: []}
""")
    assert {path: fault.suggestion for path, fault in faults.items()} == {
        "principals[1].methods[0]": "Catalog.Resolve",
        "principals[1].methods[1]": "Catalog",
        "principals[1].methods[2]": "Catalog.Resolve",
        "principals[1].methods[3]": "",
    }


@pytest.mark.parametrize("methods", ["", "null", "{}", "'*'"])
def test_a_list_of_methods_that_is_none_does_not_come_to_mean_all(faults_of, methods):
    faults = faults_of(f"principals: [{{name: a, certificate: a, methods: {methods}}}]")
    assert [path for path in faults if path.startswith("principals[0].methods")]


@pytest.mark.parametrize(
    ("quota", "path"),
    [
        ("concurrentCalls: 0", "principals[0].concurrentCalls"),
        ("rate: {requestsPerSecond: 0, burst: 1}", "principals[0].rate.requestsPerSecond"),
        ("rate: {requestsPerSecond: 1, burst: 0}", "principals[0].rate.burst"),
    ],
)
def test_a_quota_lets_something_through(faults_of, quota, path):
    assert list(faults_of(f"principals: [{{name: a, certificate: a, {quota}}}]")) == [path]
