"""What objects are whatever the values: valid on each version of Kubernetes, and as closed as can be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
from kubeflow_spark_api.models import SparkV1beta2ScheduledSparkApplication as SparkApplication

from gateway.adapters.audit_shipping import RESERVE
from tests.components import HELM3
from tests.integration.helm.chart import (
    CHART,
    EXAMPLES,
    NEWEST,
    Object,
    Rendered,
    container,
    env_of,
    example,
    pod,
    render,
    run_helm,
)

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]

VERSIONS = ("1.30", "1.33", "1.36")
EVERYTHING = {
    "redis": {"bundled": {"enabled": True}, "url": "", "cluster": False},
    "pipeline": {
        "worker": {"replicas": 1},
        "cronJobs": {"usage": {"schedule": "7 * * * *"}, "worker": {"schedule": "30 2 * * *"}},
        "sparkApplication": {"schedule": "@hourly", "image": "spark-with-sluice"},
    },
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
}
# Of operators, whose own definitions say what is valid.
CUSTOM = ("cert-manager.io", "external-secrets.io", "gateway.networking.k8s.io", "monitoring.coreos.com")
SPARK = "sparkoperator.k8s.io"


@pytest.fixture(scope="module", params=["default", "everything", *EXAMPLES])
def rendered(request) -> Rendered:
    if request.param == "everything":
        return render("aws", values=EVERYTHING)
    return render(*([] if request.param == "default" else [request.param]))


@pytest.fixture(scope="module")
def everything() -> Rendered:
    return render("aws", values=EVERYTHING)


def workloads(rendered: Rendered) -> list[Object]:
    return [*rendered.of("Deployment").values(), *rendered.of("CronJob").values()]


def containers(rendered: Rendered) -> Iterator[Object]:
    for workload in workloads(rendered):
        yield from pod(workload)["containers"]
        yield from pod(workload).get("initContainers", ())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid_on_this_version(rendered, version):
    own = [each for each in rendered.objects if _group(each) not in (*CUSTOM, SPARK)]
    assert own
    for each in own:
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_helm_finds_nothing_to_complain_of(name):
    strictly = ["lint", "--strict", "--kube-version", NEWEST]
    assert "0 chart(s) failed" in run_helm("helm3", *strictly, "--values", str(example(name)), str(CHART))


def test_a_misspelt_field_would_be_found():
    (service, *_) = render().of("Service").values()
    service["spec"]["selectr"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, VERSIONS[-1], strict=True)


def test_the_spark_application_is_one(everything):
    (application,) = everything.of("ScheduledSparkApplication").values()
    understood = SparkApplication.from_dict(application)
    assert understood is not None
    # The model drops what it does not know.
    assert _only_known(application, understood.to_dict()) == []


def test_every_container_is_locked_down(rendered):
    for workload in workloads(rendered):
        security = pod(workload)["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod(workload)["enableServiceLinks"] is False
    for each in containers(rendered):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_only_what_starts_pods_of_spark_has_a_token_of_kubernetes(everything):
    with_token = {
        workload["metadata"]["name"]
        for workload in workloads(everything)
        if pod(workload).get("automountServiceAccountToken", True)
    }
    assert with_token == {"sluice-pipeline-usage", "sluice-pipeline-worker"}


def test_each_process_has_an_account_of_its_own(rendered):
    accounts = [pod(process)["serviceAccountName"] for process in rendered.processes.values()]
    assert len(set(accounts)) == len(accounts)
    assert set(accounts) <= set(rendered.of("ServiceAccount"))


def test_edge_and_catalog_have_no_identity_that_opens_a_table():
    for name in ("aws", "azure", "gcp"):
        accounts = render(name).of("ServiceAccount")
        identities = {
            account.removeprefix("sluice-"): set(each["metadata"].get("annotations", {}).values())
            for account, each in accounts.items()
        }
        tables = identities["snapshot"] | identities["presign"] | identities["vending"]
        assert len(tables) == 3
        assert tables.isdisjoint(identities["edge"] | identities["catalog"])


def test_pods_of_azure_are_labelled_for_the_webhook_that_brings_their_identity():
    for process in render("azure").processes.values():
        labels = process["spec"]["template"]["metadata"]["labels"]
        assert labels["azure.workload.identity/use"] == "true"


def test_a_rolling_update_takes_no_pod_before_another_is_there(rendered):
    for process in rendered.processes.values():
        assert process["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_a_pod_is_given_the_time_that_its_requests_are_and_its_last_audit_segment(rendered):
    for process in rendered.processes.values():
        seconds = [int(env_of(process)[name].removesuffix("s")) for name in ("SLUICE_GRACE", "SLUICE_DRAIN")]
        wait = container(process)["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert wait > 0
        # And some more for the process to end in.
        needed = wait + sum(seconds) + RESERVE.total_seconds() + 5
        assert pod(process)["terminationGracePeriodSeconds"] > needed


def test_snapshots_fit_into_the_memory_of_their_pod():
    snapshot = render().processes["snapshot"]
    # 2 GiB and 512 MiB unless they are set, and as much as half of it again for what is being read.
    assert container(snapshot)["resources"]["limits"]["memory"] == "4Gi"


def test_pods_may_be_called_by_those_who_have_to_and_by_nobody_else():
    policies = render().of("NetworkPolicy")
    assert policies["sluice-deny"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policies["sluice-deny"]["spec"]
    for name in ("catalog", "snapshot", "presign", "vending"):
        assert _callers(policies[f"sluice-{name}"]["spec"], "grpc") == {"edge"}
    assert _called(policies["sluice-edge"]["spec"]) == {"catalog", "snapshot", "presign", "vending"}
    for name in ("catalog", "snapshot", "presign", "vending"):
        assert _called(policies[f"sluice-{name}"]["spec"]) == set()


def test_stores_are_reached_by_those_who_open_them_only():
    def reaching(rendered: Rendered) -> set[str]:
        return {
            name.removeprefix("sluice-")
            for name, policy in rendered.of("NetworkPolicy").items()
            for rule in policy["spec"].get("egress", ())
            if {"port": 443} in rule.get("ports", ())
        }

    assert reaching(render()) == {"snapshot", "presign", "vending"}
    # Audit segments are shipped to a store, and the state lies in one.
    assert {"edge", "catalog"} <= reaching(render("aws"))


def test_redis_is_reached_by_those_who_issue_only():
    policies = render("trial").of("NetworkPolicy")
    assert _callers(policies["sluice-redis"]["spec"], "redis") == {"gateway"}
    policies = render(values={"redis": {"bundled": {"enabled": True}}}).of("NetworkPolicy")
    assert _callers(policies["sluice-redis"]["spec"], "redis") == {"presign", "vending"}


def test_certificates_name_what_is_called_and_who_calls():
    rendered = render("aws")
    edge = rendered.processes["edge"]
    names = {
        value.removeprefix("dns:///").removesuffix(":9400")
        for key, value in env_of(edge).items()
        if key.startswith("SLUICE_SERVICES_ADDRESSES_")
    }
    certificates = rendered.of("Certificate")
    assert names <= {name for each in certificates.values() for name in each["spec"].get("dnsNames", ())}
    (identity,) = certificates["sluice-edge"]["spec"]["uris"]
    assert identity in rendered.of("ConfigMap")["sluice-catalog"]["data"]["server.yaml"]


def _group(each: Object) -> str:
    return str(each["apiVersion"]).split("/")[0]


def _callers(spec: Object, port: str) -> set[str]:
    rules = [rule for rule in spec["ingress"] if rule["ports"] == [{"port": port}]]
    return {_component(peer) for rule in rules for peer in rule["from"]}


def _called(spec: Object) -> set[str]:
    rules = [rule for rule in spec["egress"] if rule["ports"] == [{"port": "grpc"}]]
    return {_component(peer) for rule in rules for peer in rule["to"]}


def _component(peer: Object) -> str:
    labels: dict[str, str] = peer["podSelector"]["matchLabels"]
    return labels["app.kubernetes.io/component"]


def _only_known(given: Any, understood: Any, path: str = "") -> list[str]:
    """Return the paths of what was given and not understood."""
    if isinstance(given, dict):
        missing = [f"{path}.{key}" for key in given if key not in understood]
        inner = [
            _only_known(given[key], understood[key], f"{path}.{key}") for key in given if key in understood
        ]
        return missing + [each for found in inner for each in found]
    if isinstance(given, list):
        pairs = zip(given, understood, strict=True)
        return [each for one, other in pairs for each in _only_known(one, other, f"{path}[]")]
    return []
