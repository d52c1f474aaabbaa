"""Who reaches whom, where it differs from cluster to cluster: DNS, load balancers, stores by IPv6."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.components import HELM3
from tests.integration.helm.chart import Object, Rendered, render

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]

PROCESSES = ("edge", "catalog", "snapshot", "presign", "vending")
NODE_LOCAL_DNS = "169.254.20.10"
CLOUD_DNS = "169.254.169.254"
ROUTE = {"enabled": True, "parentRefs": [{"name": "public"}]}


def reached(rendered: Rendered, process: str, port: int) -> list[Object]:
    """Return the peers that a process may open connections to at a port."""
    rules = rendered.of("NetworkPolicy")[f"sluice-{process}"]["spec"]["egress"]
    return [peer for rule in rules if port in (each["port"] for each in rule["ports"]) for peer in rule["to"]]


def reaches(peers: list[Object], address: str) -> bool:
    """Tell whether an address outside of the cluster is among peers."""
    return any(_holds(peer["ipBlock"], address) for peer in peers if "ipBlock" in peer)


def _holds(block: Object, address: str) -> bool:
    inside = ip_address(address) in ip_network(block["cidr"])
    return inside and not any(ip_address(address) in ip_network(each) for each in block.get("except", ()))


def callers(rendered: Rendered, process: str, port: str) -> list[Object]:
    rules = rendered.of("NetworkPolicy")[f"sluice-{process}"]["spec"].get("ingress", ())
    return [peer for rule in rules if rule["ports"] == [{"port": port}] for peer in rule["from"]]


@pytest.mark.parametrize("process", PROCESSES)
def test_names_are_looked_up_in_the_cluster_and_on_the_node(process):
    peers = reached(render(), process, 53)
    assert {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}} in peers
    assert reaches(peers, NODE_LOCAL_DNS)
    # The machine's metadata service is beside it.
    assert not reaches(peers, CLOUD_DNS)


def test_names_are_looked_up_by_both_protocols_at_the_ports_that_are_given():
    policies = render(values={"networkPolicy": {"dns": {"ports": [53, 5353]}}}).of("NetworkPolicy")
    rule = policies["sluice-edge"]["spec"]["egress"][0]
    asked = {(each["port"], each["protocol"]) for each in rule["ports"]}
    assert asked == {(53, "UDP"), (53, "TCP"), (5353, "UDP"), (5353, "TCP")}


def test_on_google_cloud_names_are_looked_up_in_every_place_that_a_cluster_may_have():
    peers = reached(render("gcp"), "edge", 53)
    assert any("namespaceSelector" in peer for peer in peers)
    assert reaches(peers, NODE_LOCAL_DNS)
    assert reaches(peers, CLOUD_DNS)


@pytest.mark.parametrize(
    ("address", "may_be_reached"),
    [
        ("203.0.113.7", True),
        ("2001:db8::7", True),
        ("169.254.169.254", False),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
    ],
)
def test_stores_are_reached_by_either_protocol_and_metadata_services_by_neither(address, may_be_reached):
    assert reaches(reached(render(), "presign", 443), address) is may_be_reached


def test_a_load_balancer_checks_the_health_of_edges_where_it_is_told_to_and_of_nothing_else():
    azure = render("azure")
    clients = callers(azure, "edge", "http")
    # Application Gateway for Containers asks what the readiness probe does, at the port of metrics.
    assert [peer for peer in callers(azure, "edge", "metrics") if peer in clients] == clients
    for process in PROCESSES[1:]:
        assert not any(peer in clients for peer in callers(azure, process, "metrics"))
    assert callers(render(), "edge", "metrics") == callers(render(), "catalog", "metrics")


@pytest.mark.parametrize(
    ("given", "rendered"),
    [
        ({}, {"request": "0s"}),
        ({"timeouts": {"backendRequest": "10s"}}, {"request": "0s", "backendRequest": "10s"}),
        ({"timeouts": {"request": ""}}, None),
    ],
)
def test_a_route_has_the_timeouts_that_are_given(given, rendered):
    values: dict[str, Any] = {"httpRoute": {**ROUTE, **given}}
    (rule,) = render(values=values).of("HTTPRoute")["sluice"]["spec"]["rules"]
    assert rule.get("timeouts") == rendered


def test_the_route_on_google_cloud_has_no_timeouts_which_would_have_it_refused():
    (rule,) = render("gcp").of("HTTPRoute")["sluice"]["spec"]["rules"]
    assert "timeouts" not in rule


def test_policies_of_google_cloud_are_about_the_service_of_edges():
    rendered = render("gcp")
    for kind in ("HealthCheckPolicy", "GCPBackendPolicy"):
        (policy,) = rendered.of(kind).values()
        target = policy["spec"]["targetRef"]
        assert target == {"group": "", "kind": "Service", "name": "sluice"}
        assert target["name"] in rendered.of("Service")
    assert rendered.of("GCPBackendPolicy")["sluice"]["spec"]["default"]["timeoutSec"] == 3600


def test_more_objects_are_installed_as_they_are_with_the_charts_labels():
    given = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "more", "labels": {"app.kubernetes.io/component": "mine"}},
        "data": {"number": "3600"},
    }
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    made = render(values={"extraObjects": [given, other]}).of("ConfigMap")
    assert made["more"]["data"] == given["data"]
    labels = made["more"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == "mine"
    assert labels["app.kubernetes.io/instance"] == "sluice"
    assert made["other"]["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_what_one_process_ships_to_a_store_of_its_own_setting_may_leave_it():
    landing = {"usage": {"landing": "s3://audit/landing"}}
    rendered = render(values={"processes": {"edge": {"config": landing}}})
    assert reached(rendered, "edge", 443)
    assert not reached(rendered, "catalog", 443)


@pytest.mark.parametrize("where", ["all", "edge"])
def test_the_service_tells_that_edges_speak_tls_wherever_that_is_set(where):
    ssl = {"ssl": {"certificateFile": "/etc/tls.crt", "certificateKeyFile": "/etc/tls.key"}}
    values = {"config": ssl} if where == "all" else {"processes": {"edge": {"config": ssl}}}
    (port,) = render(values=values).of("Service")["sluice"]["spec"]["ports"]
    assert port["appProtocol"] == "https"
    (port,) = render().of("Service")["sluice"]["spec"]["ports"]
    assert port["appProtocol"] == "http"
