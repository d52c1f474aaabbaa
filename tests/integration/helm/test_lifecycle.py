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
from tests.integration.helm.volumes import add_shared_claim
from tests.waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.component(KUBERNETES)]

VERSIONS = ("helm3", "helm4")
# What Kubernetes itself puts into a namespace, and what a test does.
ALWAYS_THERE = {"default", "kube-root-ca.crt", "sluice-audit"}
KINDS = (
    *(f"api/v1/{kind}" for kind in ("pods", "services", "configmaps", "secrets", "serviceaccounts")),
    "api/v1/persistentvolumeclaims",
    *("apis/apps/v1/deployments", "apis/apps/v1/replicasets", "apis/batch/v1/cronjobs"),
    *("apis/autoscaling/v2/horizontalpodautoscalers", "apis/policy/v1/poddisruptionbudgets"),
    *("apis/networking.k8s.io/v1/networkpolicies", "apis/networking.k8s.io/v1/ingresses"),
    *("apis/rbac.authorization.k8s.io/v1/roles", "apis/rbac.authorization.k8s.io/v1/rolebindings"),
    *("apis/cert-manager.io/v1/certificates", "apis/external-secrets.io/v1/externalsecrets"),
    *("apis/cert-manager.io/v1/issuers", "apis/networking.gke.io/v1/healthcheckpolicies"),
    "apis/networking.gke.io/v1/gcpbackendpolicies",
    *("apis/gateway.networking.k8s.io/v1/httproutes", "apis/monitoring.coreos.com/v1/podmonitors"),
    *("apis/monitoring.coreos.com/v1/servicemonitors", "apis/monitoring.coreos.com/v1/prometheusrules"),
)
# What is said to whoever installs it so.
LOST = "the audit log is lost"
# Both versions install every example. Each example is upgraded and rolled back by one of them; by the other
# before a release.
UPGRADES = {"helm3": ("default", "azure", "gcp"), "helm4": ("aws", "minio", "trial")}
CHANGE = {"processDefaults": {"podAnnotations": {"example.com/change": "1"}}}
# As docs/kubernetes.md has keys rotated, with the Secrets that pods have afterwards: current, and previous.
# The second step adds a Secret and changes the order: it is the one that Helm 4 applies too. It applies all
# before a release.
ROTATION = (
    ({"previousSecretName": "sluice-keys-2"}, ["sluice-keys", "sluice-keys-2"]),
    (
        {"secretName": "sluice-keys-2", "previousSecretName": "sluice-keys"},
        ["sluice-keys-2", "sluice-keys"],
    ),
    ({"secretName": "sluice-keys-2"}, ["sluice-keys-2"]),
)
FIVE = ("edge", "catalog", "snapshot", "presign", "vending")
FEW = {"processDefaults": {"replicas": 1}, "processes": {"presign": {"replicas": 3}}}
SHIPPING = {"usage": {"landing": "/var/lib/landing"}}
ONE = {"processes": {"gateway": {"run": [*FIVE], "config": SHIPPING}, **dict.fromkeys(FIVE)}}


class Release:
    """One installation in a namespace of its own."""

    def __init__(self, cluster: Cluster, helm: str, values: str, namespace: str = "", *options: str) -> None:
        self._cluster = cluster
        self._helm = helm
        self.applies_on_server = helm == "helm4"
        self.is_upgraded = values in UPGRADES[helm]
        self.namespace = namespace or f"{values}-{helm}"
        self._namespaces = (self.namespace, f"{self.namespace}-pipeline")
        self._files = [] if values == "default" else ["--values", str(example(values))]
        # Two releases live at once, each with a pipeline. Nobody calls pods that kwok pretends to run.
        own = f"pipeline.namespace={self._namespaces[1]},processDefaults.minReadySeconds=0"
        self._files += ["--set", own, *options]
        for name in self._namespaces:
            cluster.namespace(name)
        if values == "minio":
            add_shared_claim(cluster, self.namespace, "sluice-audit")

    def install(self) -> str:
        return self._run("install", "sluice", str(CHART), *self._files)

    def upgrade(self, values: Values, *options: str) -> str:
        command = ["upgrade", "sluice", str(CHART), *self._files, "--values", "-", *options]
        if not self.applies_on_server:
            # To parse all schemas is most of the work of Helm 3. It does so once, for the installation.
            command.append("--disable-openapi-validation")
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
        """Return the objects of the first kind of which a release has left any."""
        for kind in KINDS:
            names = {each["metadata"]["name"] for each in self._list(kind)} - ALWAYS_THERE
            if names:
                return {f"{kind} {name}" for name in names}
        return set()

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

    def deployments(self) -> dict[str, Object]:
        """Return the Deployments by the name of the process."""
        found = self._cluster.api.list(f"/apis/apps/v1/namespaces/{self.namespace}/deployments")
        return {each["metadata"]["name"].removeprefix("sluice-"): each for each in found}

    def autoscalers(self) -> list[Object]:
        return self._cluster.api.list(
            f"/apis/autoscaling/v2/namespaces/{self.namespace}/horizontalpodautoscalers"
        )

    def replicas(self, process: str) -> int:
        """Return how many pods are asked for."""
        asked: int = self.deployments()[process]["spec"]["replicas"]
        return asked

    def pods_of(self, process: str) -> set[str]:
        """Return which pods of a process there are, each of them another for ever."""
        key = "app.kubernetes.io/component"
        return {
            each["metadata"]["uid"] for each in self.pods() if each["metadata"]["labels"].get(key) == process
        }

    def key_secrets(self) -> list[list[str]]:
        """Return the Secrets that pods have keys from, as each different list of them."""
        volumes = [volume for each in self.pods() for volume in each["spec"]["volumes"]]
        sources = [each["projected"]["sources"] for each in volumes if each["name"] == "keys"]
        found = {tuple(source["secret"]["name"] for source in each) for each in sources}
        return [list(each) for each in sorted(found)]

    def changed(self) -> set[str | None]:
        """Return what pods have of the change."""
        pods = self._cluster.pods(self.namespace)
        annotations = [each["metadata"].get("annotations", {}) for each in pods]
        return {each.get("example.com/change") for each in annotations}

    def _run(self, *arguments: str, stdin: str = "") -> str:
        where = ["--namespace", self.namespace, "--wait", "--timeout", "10m"]
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
    eventually(lambda: may(cluster, account, "create", "pods", "spark"), "Spark may make its executors")
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
    assert [LOST in each for each in notes] == [loses_audit, loses_audit]


def live_and_end(release: Release) -> str:
    """Go through all that a release does, and return what is said at its beginning."""
    notes = release.install()
    pods = release.pods()
    assert pods
    assert {each["status"]["phase"] for each in pods} == {"Running"}
    eventually(
        lambda: all(each["status"].get("conditions") for each in release.autoscalers()),
        f"autoscalers of {release.namespace} have looked at their Deployments",
    )
    # No autoscaler had to change a Deployment: each begins with as many pods as it is to have.
    assert {each["metadata"]["generation"] for each in release.deployments().values()} == {1}
    if release.is_upgraded:
        change_and_roll_back(release)
    release.uninstall()
    eventually(lambda: release.leftovers() == set(), f"{release.namespace} is as it was before")
    return notes


def change_and_roll_back(release: Release) -> None:
    release.upgrade(CHANGE)
    assert "1" in release.changed()
    release.rollback()
    eventually(lambda: release.changed() == {None}, f"{release.namespace} has only pods of before the change")


@pytest.mark.release
@pytest.mark.component(HELM3, HELM4)
@pytest.mark.parametrize("values", ["default", *EXAMPLES])
def test_example_is_upgraded_and_rolled_back_by_the_other_version_too(cluster, values):
    (helm,) = (each for each in VERSIONS if values not in UPGRADES[each])
    release = Release(cluster, helm, values, f"{values}-{helm}-changed")
    release.install()
    change_and_roll_back(release)
    release.uninstall()


@pytest.mark.release
@pytest.mark.component(HELM4)
def test_keys_are_rotated_in_all_steps_by_helm_4_too(cluster, few):
    release = Release(cluster, "helm4", "default", "rotation-helm4", *few)
    release.install()
    for keys, secrets in ROTATION:
        give_keys(release, keys, secrets)
    release.uninstall()


@pytest.fixture
def few(tmp_path) -> tuple[str, str]:
    """Options for fewer pods."""
    file = tmp_path / "few.yaml"
    file.write_text(yaml.safe_dump(FEW))
    return "--values", str(file)


@pytest.mark.component(HELM3, HELM4)
def test_a_release_is_changed_in_all_the_ways_that_are_documented(cluster, few):
    with ThreadPoolExecutor() as pool:
        releases = [Release(cluster, helm, "default", f"changes-{helm}", *few) for helm in VERSIONS]
        list(pool.map(go_through_changes, releases))


def go_through_changes(release: Release) -> None:
    release.install()
    autoscale(release)
    for keys, secrets in ROTATION[1:2] if release.applies_on_server else ROTATION:
        give_keys(release, keys, secrets)
    assert LOST not in release.upgrade(ONE)
    assert set(release.deployments()) == {"gateway"}
    assert LOST in release.upgrade({})
    assert set(release.deployments()) == set(FIVE)
    release.uninstall()
    eventually(lambda: release.leftovers() == set(), f"{release.namespace} is as it was before")


def give_keys(release: Release, keys: Values, secrets: list[str]) -> None:
    release.upgrade({"keys": keys})
    eventually(lambda: release.key_secrets() == [secrets], f"all pods have {secrets}")


def autoscale(release: Release) -> None:
    """Turn autoscaling on, upgrade under it, and turn it off."""
    pods = release.pods_of("presign")
    assert len(pods) == 3
    release.upgrade(scaled(2))
    # The same three: there were never fewer.
    assert release.pods_of("presign") == pods
    assert release.replicas("presign") == 3
    # Without load the autoscaler does nothing but to keep the fewest.
    release.upgrade(scaled(5))
    eventually(lambda: release.replicas("presign") == 5, "the autoscaler has made it five")
    release.upgrade(scaled(2))
    assert release.replicas("presign") == 5
    if release.applies_on_server:
        with pytest.raises(AssertionError, match=r"conflict.*\.spec\.replicas"):
            release.upgrade({})
    release.upgrade({}, *(["--force-conflicts"] if release.applies_on_server else []))
    assert release.replicas("presign") == 3


def scaled(fewest: int) -> Values:
    return {"processes": {"presign": {"autoscaling": {"enabled": True, "minReplicas": fewest}}}}
