"""What objects are whatever the values: valid on each version of Kubernetes, and as closed as can be."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_network
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubeflow_spark_api.models import SparkV1beta2ScheduledSparkApplication as SparkApplication

from gateway.adapters.audit_shipping import RESERVE
from gateway.config.schema import ServiceName, ServicesConfig
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
from tests.observed import alerts

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]

VERSIONS = ("1.30", "1.33", "1.36")
EVERYTHING = {
    "redis": {"bundled": {"enabled": True}, "url": "", "cluster": False},
    "pipeline": {
        "namespace": "spark",
        "worker": {"replicas": 1},
        "cronJobs": {"usage": {"schedule": "7 * * * *"}, "worker": {"schedule": "30 2 * * *"}},
        "sparkApplication": {"schedule": "@hourly", "image": "spark-with-sluice"},
    },
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
}
# Of operators, whose own definitions say what is valid.
CUSTOM = (
    *("cert-manager.io", "external-secrets.io", "gateway.networking.k8s.io", "monitoring.coreos.com"),
    "networking.gke.io",
)
SPARK = "sparkoperator.k8s.io"


@pytest.fixture(scope="module", autouse=True)
def _cached_schemas() -> Iterator[None]:
    """Have the definitions of a Kubernetes version parsed once, not once for each object."""
    utils = kubernetes_validate.utils
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "schema_contents", cache(utils.schema_contents))
        yield


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


def with_token(rendered: Rendered) -> set[tuple[str, str]]:
    """Return kind and name of what has a token of Kubernetes in its pods."""
    return {
        (workload["kind"], workload["metadata"]["name"])
        for workload in workloads(rendered)
        if pod(workload).get("automountServiceAccountToken", True)
    }


def test_only_drivers_whose_executors_are_pods_have_a_token_of_kubernetes(everything):
    assert with_token(everything) == {("CronJob", "sluice-pipeline-usage")}
    spark = {"pipeline": {"spark": {"master": "k8s://https://kubernetes.default.svc:443"}}}
    workers = render("aws", values={**EVERYTHING, "config": spark})
    assert with_token(workers) == {
        ("CronJob", "sluice-pipeline-usage"),
        ("CronJob", "sluice-pipeline-worker"),
        ("Deployment", "sluice-pipeline-worker"),
    }
    settings = yaml.safe_load(workers.of("ConfigMap")["sluice-pipeline"]["data"]["server.yaml"])
    assert settings["pipeline"]["spark"]["conf"]["spark.kubernetes.namespace"] == "spark"


def test_the_driver_of_a_spark_application_has_a_token_and_its_executors_have_none(everything):
    (application,) = everything.of("ScheduledSparkApplication").values()
    template = application["spec"]["template"]
    tokens = {
        part: template[part]["template"]["spec"]["automountServiceAccountToken"]
        for part in ("driver", "executor")
    }
    assert tokens == {"driver": True, "executor": False}


def test_executors_of_a_spark_application_can_write_where_they_must(everything):
    (application,) = everything.of("ScheduledSparkApplication").values()
    template = application["spec"]["template"]
    empty = {volume["name"] for volume in template["volumes"] if "emptyDir" in volume}
    mounts = {mount["mountPath"]: mount["name"] for mount in template["executor"]["volumeMounts"]}
    assert set(mounts) == {"/tmp", "/opt/spark/work-dir"}
    assert set(mounts.values()) <= empty


def test_nobody_may_make_pods_where_the_gateway_is(everything):
    roles = [*everything.of("Role").values(), *everything.of("RoleBinding").values()]
    assert [role["metadata"]["namespace"] for role in roles] == ["spark", "spark"]
    pipeline = [each for each in everything.objects if each["metadata"]["name"].startswith("sluice-pipeline")]
    assert {each["metadata"]["namespace"] for each in pipeline} == {"spark"}
    arguments = container(everything.of("CronJob")["sluice-pipeline-usage"])["command"]
    assert "spark.kubernetes.namespace=spark" in arguments
    # Nothing that is rendered gives a right in the whole cluster.
    assert not any(kind.startswith("ClusterRole") for kind in (each["kind"] for each in everything.objects))


def test_what_runs_for_long_is_started_by_the_init_of_the_image(everything):
    workers = [
        everything.of("Deployment")["sluice-pipeline-worker"],
        everything.of("CronJob")["sluice-pipeline-worker"],
    ]
    long_lived = [*everything.processes.values(), *workers]
    assert len(everything.processes) == len(ServiceName)
    # A command would take the place of the entrypoint, which buries a killed job's children.
    assert [container(each)["name"] for each in long_lived if "command" in container(each)] == []


def test_a_pipeline_that_makes_no_pods_may_be_beside_the_gateway():
    rendered = render(values={"pipeline": {"worker": {"replicas": 1}}})
    assert rendered.of("Role") == {}
    assert rendered.of("Deployment")["sluice-pipeline-worker"]["metadata"]["namespace"] == "sluice"


def test_the_password_of_the_bundled_redis_is_in_a_file_only():
    rendered = render("trial")
    redis = container(rendered.of("Deployment")["sluice-redis"])
    assert redis["args"][0] == "/etc/redis/redis.conf"
    assert "env" not in redis
    secret = {
        key: base64.b64decode(value).decode()
        for key, value in rendered.of("Secret")["sluice-redis"]["data"].items()
    }
    assert secret["redis.conf"] == f"requirepass {secret['password']}\n"


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
def test_prometheus_finds_the_metrics_of_every_pod(kind):
    rendered = render("aws", values={"monitoring": {"monitor": {"kind": kind}}})
    (monitor,) = rendered.of(kind).values()
    assert set(monitor["spec"]["namespaceSelector"]["matchNames"]) == {"sluice", "sluice-pipeline"}
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    services = [each for each in rendered.objects if each["kind"] == "Service"]
    found = [each for each in services if wanted <= each["metadata"]["labels"].items()]
    if kind == "PodMonitor":
        assert all(wanted <= _labels(process).items() for process in rendered.of("Deployment").values())
        assert "sluice-metrics" not in rendered.of("Service")
        return
    # A Service in each namespace, whose selector is about all pods there.
    assert {each["metadata"]["namespace"] for each in found} == {"sluice", "sluice-pipeline"}
    for service in found:
        selector = service["spec"]["selector"].items()
        assert all(selector <= _labels(process).items() for process in rendered.of("Deployment").values())
        assert service["spec"]["publishNotReadyAddresses"] is True


def test_alerts_are_those_of_the_project_but_for_the_ones_that_are_left_out():
    rules = _alerts({})
    assert rules == alerts()
    left_out = {"SluiceTokenExpiresSoon", "SluiceRecipientFails", "SluiceRecipientThrottled"}
    # Two of them are all that their group has.
    assert _alerts({"disabled": sorted(left_out)}).keys() == rules.keys() - left_out


def test_alerts_link_to_wherever_the_runbooks_are():
    rules = _alerts({"runbookUrl": "https://wiki.example/runbooks"})
    assert {rule["annotations"]["runbook_url"] for rule in rules.values()} == {
        f"https://wiki.example/runbooks#{name.lower()}" for name in rules
    }


def _alerts(settings: dict[str, Any]) -> dict[str, Any]:
    rendered = render(values={"monitoring": {"rules": {"enabled": True, **settings}}})
    groups = rendered.of("PrometheusRule")["sluice"]["spec"]["groups"]
    assert all(group["name"] and group["rules"] for group in groups)
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


@pytest.mark.parametrize("name", ["aws", "azure", "gcp"])
def test_only_load_balancers_call_the_edge_and_are_believed(name):
    rendered = render(name)
    (rule,) = [
        rule
        for rule in rendered.of("NetworkPolicy")["sluice-edge"]["spec"]["ingress"]
        if rule["ports"] == [{"port": "http"}]
    ]
    callers = {peer["ipBlock"]["cidr"] for peer in rule["from"]}
    settings = yaml.safe_load(rendered.of("ConfigMap")["sluice-edge"]["data"]["server.yaml"])
    assert callers <= set(settings["http"]["trustedProxies"])
    # Of the customer's own addresses a subnet at most: pods and others in its network are not to be believed.
    networks = [ip_network(each) for each in settings["http"]["trustedProxies"]]
    assert all(each.prefixlen >= 24 for each in networks if each.is_private)


def test_an_edge_keeps_connections_for_longer_than_the_load_balancer_does():
    idle = {"aws": 330, "gcp": 600}
    for name, seconds in idle.items():
        settings = yaml.safe_load(render(name).of("ConfigMap")["sluice-edge"]["data"]["server.yaml"])
        assert int(settings["http"]["keepAlive"].removesuffix("s")) > seconds
    attributes = render("aws").of("Ingress")["sluice"]["metadata"]["annotations"]
    assert attributes["alb.ingress.kubernetes.io/load-balancer-attributes"].endswith(f"={idle['aws']}")


@pytest.mark.parametrize("name", ["aws", "azure", "gcp", "minio"])
def test_no_example_for_production_loses_its_audit_log_with_a_pod(name):
    rendered = render(name)
    settings = yaml.safe_load(rendered.of("ConfigMap")["sluice-edge"]["data"]["server.yaml"])
    volumes = {volume["name"]: volume for volume in pod(rendered.processes["edge"])["volumes"]}
    assert settings.get("usage", {}).get("landing") or "persistentVolumeClaim" in volumes["audit"]


def test_no_probe_that_restarts_a_process_asks_for_other_services(rendered):
    for process in rendered.processes.values():
        probes = container(process)
        asked = {name: probes[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness")}
        assert set(asked.values()) == {"/healthz"}
        assert probes["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_old_pods_stay_until_callers_can_have_found_the_new_ones(rendered):
    # Callers look names up again when a connection has come to this age.
    age = ServicesConfig().max_connection_age.total_seconds()
    for process in rendered.processes.values():
        assert process["spec"]["minReadySeconds"] >= 2 * age
    slow = render(values={"processes": {"edge": {"minReadySeconds": 60}}}).processes
    assert {name: each["spec"]["minReadySeconds"] for name, each in slow.items()} == {
        **dict.fromkeys(slow, 30),
        "edge": 60,
    }


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


def _labels(workload: Object) -> dict[str, str]:
    labels: dict[str, str] = workload["spec"]["template"]["metadata"]["labels"]
    return labels


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
