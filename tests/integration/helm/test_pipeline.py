"""What the chart makes of the pipeline's values: drivers, workers and their executors."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest
import yaml

from gateway.adapters.config_check import read_whole
from tests.components import HELM3
from tests.integration.helm.chart import Object, Refused, Rendered, container, env_of, pod, render
from tests.integration.helm.pod_files import PodFiles

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]

HOURLY = "7 * * * *"
ON_KUBERNETES = {"spark": {"master": "k8s://https://kubernetes.default.svc:443"}}
ALL_JOBS = {
    "namespace": "spark",
    "worker": {"replicas": 1},
    "cronJobs": {"usage": {"schedule": HOURLY}, "worker": {"schedule": HOURLY}},
    "sparkApplication": {"schedule": "@hourly", "image": "spark-with-sluice"},
}
# Whatever a pod of the pipeline can be told by values.
TOLD: dict[str, Any] = {
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "spark", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "secretFiles": {"lake": "lake-keys"},
    "extraEnv": [{"name": "AWS_REGION", "value": "eu-west-1"}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
}


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    pipeline = {**ALL_JOBS, **TOLD, "image": {"pullPolicy": "Always"}}
    given = {
        "pipeline": pipeline,
        "image": {"pullSecrets": ["registry"]},
        "config": {"pipeline": ON_KUBERNETES},
    }
    return render(values=given)


def executor(rendered: Rendered) -> Object:
    """Return the pod that Spark is to make executors from."""
    text = rendered.of("ConfigMap")["sluice-pipeline-spark"]["data"]["executor.yaml"]
    found: Object = yaml.safe_load(text)
    return found


def submitted(rendered: Rendered) -> dict[str, str]:
    """Return the settings that spark-submit is given."""
    command = container(rendered.of("CronJob")["sluice-pipeline-usage"])["command"]
    given = [after for part, after in pairwise(command) if part == "--conf"]
    return dict(each.split("=", 1) for each in given)


def worker_settings(rendered: Rendered) -> dict[str, str]:
    """Return the settings of Spark's that workers read."""
    settings = yaml.safe_load(rendered.of("ConfigMap")["sluice-pipeline"]["data"]["server.yaml"])
    found: dict[str, str] = settings["pipeline"]["spark"]["conf"]
    return found


def drivers(rendered: Rendered) -> list[Object]:
    """Return the workloads whose pods are drivers, workers included."""
    deployments = rendered.of("Deployment")
    return [*rendered.of("CronJob").values(), deployments["sluice-pipeline-worker"]]


def application(rendered: Rendered) -> Object:
    (found,) = rendered.of("ScheduledSparkApplication").values()
    template: Object = found["spec"]["template"]
    return template


@cache
def known_to_spark() -> re.Pattern[str]:
    """Return a pattern of the names of settings that Spark's code for Kubernetes has."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-kubernetes_*.jar")
    with ZipFile(jar) as classes:
        code = classes.read("org/apache/spark/deploy/k8s/Config$.class").decode("latin-1")
    whole = set(re.findall(r"spark\.kubernetes\.[\w.]*\w", code))
    # Names that are put together have a mark where the other part goes.
    ends = set(re.findall(r"\x01(\.\w+)", code))
    names = {*whole, *(name + end for name in whole if ".authenticate" in name for end in ends)}
    return re.compile("|".join(map(re.escape, names)))


def test_every_setting_of_kubernetes_is_one_that_spark_has(rendered):
    for conf in (submitted(rendered), worker_settings(rendered)):
        named = [name for name in conf if name.startswith("spark.kubernetes.")]
        assert len(named) == 6
        assert [name for name in named if not known_to_spark().fullmatch(name)] == []
    # It is not Spark that would say so.
    assert not known_to_spark().fullmatch("spark.kubernetes.executor.serviceAccountName")


def test_executors_have_the_account_of_their_driver():
    identity = {"name": "reader", "annotations": {"eks.amazonaws.com/role-arn": "role"}}
    rendered = render(values={"pipeline": {**ALL_JOBS, "serviceAccount": identity}})
    assert "reader" in rendered.of("ServiceAccount")
    accounts = {pod(each)["serviceAccountName"] for each in drivers(rendered)}
    assert accounts == {executor(rendered)["spec"]["serviceAccountName"]} == {"reader"}
    key = "spark.kubernetes.authenticate.executor.serviceAccountName"
    assert submitted(rendered)[key] == "reader"


def test_executors_are_told_all_that_drivers_are(rendered):
    spec, image = executor(rendered)["spec"], executor(rendered)["spec"]["containers"][0]
    driver = pod(rendered.of("CronJob")["sluice-pipeline-usage"])
    for key in ("nodeSelector", "tolerations", "affinity", "imagePullSecrets", "securityContext"):
        assert spec[key] == driver[key], key
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert TOLD["extraEnv"][0] in image["env"]
    mounts = {each["mountPath"]: each["name"] for each in image["volumeMounts"]}
    assert mounts["/etc/sluice/secrets/lake"] == "secret-lake"
    assert mounts["/etc/ca"] == "ca"
    assert set(mounts.values()) == {each["name"] for each in spec["volumes"]}
    assert submitted(rendered)["spark.kubernetes.container.image.pullPolicy"] == "Always"
    # The gateway's settings are none of theirs, and neither is a token.
    assert "config" not in mounts.values()
    assert spec["automountServiceAccountToken"] is False


def test_drivers_and_executors_of_a_spark_application_are_told_the_same(rendered):
    for part in ("driver", "executor"):
        told = application(rendered)[part]
        assert {key: told[key] for key in ("nodeSelector", "tolerations", "affinity")} == {
            key: TOLD[key] for key in ("nodeSelector", "tolerations", "affinity")
        }
        assert TOLD["extraEnv"][0] in told["env"]
        paths = {each["mountPath"] for each in told["volumeMounts"]}
        assert {"/etc/sluice/secrets/lake", "/etc/ca"} <= paths


def test_workers_can_have_executors_in_pods_without_more_settings(rendered, tmp_path):
    conf = worker_settings(rendered)
    own = {name: value for name, value in submitted(rendered).items() if name in conf}
    assert conf == own
    assert conf["spark.kubernetes.executor.podTemplateFile"] == "/etc/sluice/spark/executor.yaml"
    # What the file cannot know, Spark takes from the pod's variables.
    asked = {name for value in conf.values() for name in re.findall(r"\$\{env:(\w+)\}", value)}
    assert asked == {"POD_IP", "POD_NAME"}
    for workload in drivers(rendered):
        assert asked <= {each["name"] for each in container(workload)["env"]}
    plain = render(values={"pipeline": ALL_JOBS, "config": {"pipeline": ON_KUBERNETES}})
    files = PodFiles(tmp_path, plain.of("Deployment")["sluice-pipeline-worker"], plain, {})
    assert read_whole(files.config_file, files.env).faults == ()


def test_settings_of_workers_win_over_the_charts_but_for_the_namespace():
    given = {
        "spark.driver.port": "4040",
        "spark.kubernetes.namespace": "sluice",
        "spark.eventLog.enabled": "true",
    }
    spark = {"spark": {**ON_KUBERNETES["spark"], "conf": given}}
    conf = worker_settings(render(values={"pipeline": ALL_JOBS, "config": {"pipeline": spark}}))
    assert conf["spark.driver.port"] == "4040"
    assert conf["spark.eventLog.enabled"] == "true"
    # Their account may make pods there only.
    assert conf["spark.kubernetes.namespace"] == "spark"


def test_an_account_that_is_there_is_used_and_not_made():
    account = {"create": False, "name": "given"}
    rendered = render(values={"pipeline": {**ALL_JOBS, "serviceAccount": account}})
    assert not {"given", "sluice-pipeline"} & rendered.of("ServiceAccount").keys()
    (binding,) = rendered.of("RoleBinding").values()
    assert [subject["name"] for subject in binding["subjects"]] == ["given"]
    assert {pod(each)["serviceAccountName"] for each in drivers(rendered)} == {"given"}
    with pytest.raises(Refused, match=r"pipeline\.serviceAccount\.name: name the account that is there"):
        render(values={"pipeline": {**ALL_JOBS, "serviceAccount": {"create": False}}})


def test_names_of_jobs_are_no_longer_than_their_kind_may_have():
    rendered = render(
        values={"fullnameOverride": "a-name-that-goes-on-and-on-and-on-and-on", "pipeline": ALL_JOBS}
    )
    names = list(rendered.of("CronJob"))
    assert len(names) == 2
    # Kubernetes adds 11 characters for a Job, and the operator 20 for an application; both are labels then.
    assert max(map(len, names)) <= 52
    (name,) = rendered.of("ScheduledSparkApplication")
    assert len(name) <= 43
    short = render(values={"pipeline": ALL_JOBS})
    assert set(short.of("CronJob")) == {"sluice-pipeline-usage", "sluice-pipeline-worker"}
    assert set(short.of("ScheduledSparkApplication")) == {"sluice-pipeline-usage"}


def test_pods_of_the_pipeline_have_the_time_that_they_are_told_of(rendered):
    for workload in drivers(rendered):
        grace = int(env_of(workload)["SLUICE_GRACE"].removesuffix("s"))
        assert pod(workload)["terminationGracePeriodSeconds"] > grace


def test_drivers_have_a_heap_of_the_size_of_their_pod(rendered):
    for workload in drivers(rendered):
        heap = env_of(workload)["SPARK_DRIVER_MEMORY"]
        limit = container(workload)["resources"]["limits"]["memory"]
        share = int(heap.removesuffix("g")) / int(limit.removesuffix("Gi"))
        assert 0.5 <= share <= 0.75


def test_a_spark_elsewhere_can_be_let_through():
    egress = [{"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": [{"port": 7077}]}]
    ingress = [{"from": [{"ipBlock": {"cidr": "10.1.2.0/24"}}]}]
    policy = {"egress": egress, "ingress": ingress}
    rendered = render(values={"pipeline": {"worker": {"replicas": 1}, "networkPolicy": policy}})
    spec = rendered.of("NetworkPolicy")["sluice-pipeline"]["spec"]
    assert egress[0] in spec["egress"]
    assert ingress[0] in spec["ingress"]
