"""A release by Helm 3 and 4 on a real Kubernetes API, in namespaces with restricted Pod Security."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from tests.components import HELM3, HELM4, KUBERNETES
from tests.integration.helm.chart import (
    CHART,
    EXAMPLES,
    Object,
    Refused,
    Values,
    example,
    pod,
    render,
    run_helm,
)
from tests.integration.helm.control_plane import Cluster
from tests.integration.helm.kubernetes_api import wait_until
from tests.integration.helm.volumes import add_shared_claim

pytestmark = [pytest.mark.system, pytest.mark.component(KUBERNETES)]

VERSIONS = ("helm3", "helm4")
# What Kubernetes itself puts into a namespace, and what a test does.
ALWAYS_THERE = {"default", "kube-root-ca.crt"}
KINDS = (
    *(f"api/v1/{kind}" for kind in ("pods", "services", "configmaps", "secrets", "serviceaccounts")),
    *("apis/apps/v1/deployments", "apis/apps/v1/replicasets", "apis/batch/v1/cronjobs"),
    *("apis/autoscaling/v2/horizontalpodautoscalers", "apis/policy/v1/poddisruptionbudgets"),
    *("apis/networking.k8s.io/v1/networkpolicies", "apis/networking.k8s.io/v1/ingresses"),
    *("apis/rbac.authorization.k8s.io/v1/roles", "apis/rbac.authorization.k8s.io/v1/rolebindings"),
    *("apis/cert-manager.io/v1/certificates", "apis/external-secrets.io/v1/externalsecrets"),
    *("apis/gateway.networking.k8s.io/v1/httproutes", "apis/monitoring.coreos.com/v1/podmonitors"),
    *("apis/monitoring.coreos.com/v1/servicemonitors", "apis/monitoring.coreos.com/v1/prometheusrules"),
)
CHANGE = {"processDefaults": {"podAnnotations": {"example.com/change": "1"}}}


class Release:
    """One installation in a namespace of its own."""

    def __init__(self, cluster: Cluster, helm: str, values: str, namespace: str = "") -> None:
        self._cluster = cluster
        self._helm = helm
        self.namespace = namespace or f"{values}-{helm}"
        self._namespaces = (self.namespace, f"{self.namespace}-pipeline")
        self._files = [] if values == "default" else ["--values", str(example(values))]
        # Two releases live at once, each with a pipeline. Nobody calls pods that kwok pretends to run.
        own = f"pipeline.namespace={self._namespaces[1]},processDefaults.minReadySeconds=0"
        self._files += ["--set", own]
        for name in self._namespaces:
            cluster.namespace(name)
        if values == "minio":
            add_shared_claim(cluster, self.namespace, "sluice-audit")

    def install(self) -> str:
        return self._run("install", "sluice", str(CHART), *self._files)

    def upgrade(self, values: Values) -> str:
        command = ["upgrade", "sluice", str(CHART), *self._files, "--values", "-"]
        return self._run(*command, stdin=yaml.safe_dump(dict(values)))

    def rollback(self) -> str:
        return self._run("rollback", "sluice", "1")

    def uninstall(self) -> str:
        return self._run("uninstall", "sluice")

    def pods(self) -> list[Object]:
        """Return the pods that are not about to go."""
        pods = self._cluster.pods(self.namespace)
        return [each for each in pods if "deletionTimestamp" not in each["metadata"]]

    def leftovers(self) -> set[str]:
        """Return what is there that a release makes, of whatever kind."""
        found = {(kind, each["metadata"]["name"]) for kind in KINDS for each in self._list(kind)}
        return {f"{kind} {name}" for kind, name in found if name not in ALWAYS_THERE}

    def _list(self, kind: str) -> list[Object]:
        group, _, name = kind.rpartition("/")
        api = self._cluster.api
        return [
            each for where in self._namespaces for each in api.list(f"/{group}/namespaces/{where}/{name}")
        ]

    def secrets(self, *names: str) -> list[Object]:
        """Return what is in Secrets."""
        path = f"/api/v1/namespaces/{self.namespace}/secrets"
        return [self._cluster.api.get(f"{path}/{name}")["data"] for name in names]

    def changed(self) -> set[str | None]:
        """Return what pods have of the change."""
        pods = self._cluster.pods(self.namespace)
        annotations = [each["metadata"].get("annotations", {}) for each in pods]
        return {each.get("example.com/change") for each in annotations}

    def _run(self, *arguments: str, stdin: str = "") -> str:
        where = ["--namespace", self.namespace, "--wait", "--timeout", "5m"]
        env = {"KUBECONFIG": str(self._cluster.kubeconfig), "HELM_CACHE_HOME": "/nonexistent"}
        try:
            return run_helm(self._helm, *arguments, *where, stdin=stdin, env=env)
        except Refused as exc:
            raise AssertionError(f"{exc}\n{self._cluster.complaints(self.namespace)}") from exc


def refusal(cluster: Cluster, namespace: str, spec: Object) -> str:
    """Return why a namespace takes no pod of this kind, or nothing."""
    body = {"metadata": {"name": "try"}, "spec": spec}
    return cluster.api.admits(f"/api/v1/namespaces/{namespace}/pods", body)


def test_a_pod_that_is_not_locked_down_is_refused_where_releases_are_tried(cluster):
    cluster.namespace("strict")
    spec = pod(render().processes["edge"]) | {"serviceAccountName": "default"}
    assert refusal(cluster, "strict", spec) == ""
    loose = spec | {"securityContext": {"runAsNonRoot": False}}
    assert 'violates PodSecurity "restricted' in refusal(cluster, "strict", loose)


def test_pods_of_the_pipeline_are_admitted_too(cluster):
    cluster.namespace("pipeline")
    schedules = {"usage": {"schedule": "0 * * * *"}, "worker": {"schedule": "0 * * * *"}}
    rendered = render("aws", values={"pipeline": {"cronJobs": schedules}})
    template = rendered.of("ConfigMap")["sluice-pipeline-spark"]["data"]["executor.yaml"]
    executor = yaml.safe_load(template)["spec"]
    # Spark adds the image.
    executor["containers"][0]["image"] = "sluice-pipeline"
    for spec in (*map(pod, rendered.of("CronJob").values()), executor):
        assert refusal(cluster, "pipeline", spec | {"serviceAccountName": "default"}) == ""


def may(cluster: Cluster, account: str, verb: str, resource: str, namespace: str) -> bool:
    """Ask Kubernetes what an account may do in a namespace."""
    asked = {"verb": verb, "resource": resource, "namespace": namespace}
    body = {"spec": {"user": f"system:serviceaccount:{account}", "resourceAttributes": asked}}
    answer = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    return bool(answer["status"]["allowed"])


@pytest.mark.component(HELM3)
def test_the_pipeline_may_make_pods_in_its_own_namespace_and_do_nothing_where_the_gateway_is(cluster):
    for name in ("sluice", "spark"):
        cluster.namespace(name)
    rendered = render("aws", values={"pipeline": {"namespace": "spark"}})
    for kind in ("Role", "RoleBinding"):
        (each,) = rendered.of(kind).values()
        where = each["metadata"]["namespace"]
        cluster.api.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{where}/{kind.lower()}s", each)
    account = "spark:sluice-pipeline"
    wait_until(lambda: may(cluster, account, "create", "pods", "spark"), "Spark may make its executors")
    assert not may(cluster, account, "get", "secrets", "spark")
    for verb, resource in (("create", "pods"), ("patch", "configmaps"), ("get", "secrets")):
        assert not may(cluster, account, verb, resource, "sluice")


@pytest.mark.component(HELM3)
def test_keys_and_passwords_that_helm_makes_stay_the_same(cluster):
    release = Release(cluster, "helm3", "trial", namespace="keys")
    release.install()
    made = release.secrets("sluice-keys", "sluice-redis")
    release.upgrade(CHANGE)
    assert release.secrets("sluice-keys", "sluice-redis") == made
    release.uninstall()


@pytest.mark.component(HELM3, HELM4)
@pytest.mark.parametrize("values", ["default", *EXAMPLES])
def test_a_release_lives_and_ends(cluster, values):
    # Side by side: Helm mostly waits.
    with ThreadPoolExecutor() as pool:
        releases = [Release(cluster, helm, values) for helm in VERSIONS]
        notes = list(pool.map(live_and_end, releases))
    # Pods of both have no disk that stays, and ship nothing.
    loses_audit = values in ("default", "trial")
    assert ["the audit log is lost" in each for each in notes] == [loses_audit, loses_audit]


def live_and_end(release: Release) -> str:
    """Go through all that a release does, and return what is said at its beginning."""
    notes = release.install()
    pods = release.pods()
    assert pods
    assert {each["status"]["phase"] for each in pods} == {"Running"}
    release.upgrade(CHANGE)
    assert "1" in release.changed()
    release.rollback()
    wait_until(lambda: release.changed() == {None}, f"{release.namespace} has only pods of before the change")
    release.uninstall()
    wait_until(lambda: release.leftovers() == set(), f"{release.namespace} is as it was before")
    return notes
