"""The usage CronJob at work: its driver asks a real API for executors, and these do the job.

Containers are processes of this machine (`kubelet.py`). All else is as on a cluster: Helm installs the chart,
Kubernetes makes the driver's pod, admits and schedules executors, and knows the driver by its token.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.jars import fetch_jars, user_cache
from tests.components import HELM3, KUBERNETES, SPARK_ON_KUBERNETES
from tests.fakes.audit_lines import MALFORMED, Story
from tests.installed import require_java
from tests.integration.helm.chart import CHART, Object, run_helm
from tests.integration.helm.control_plane import Cluster
from tests.integration.helm.kubelet import Kubelet, Pod
from tests.integration.pipeline.usage_lake import Lake
from tests.repository import ROOT
from tests.spark import SETTINGS
from tests.spark_for_speed import SMALL_TABLES
from tests.waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3, KUBERNETES, SPARK_ON_KUBERNETES)]

NAMESPACE, JOBS = "spark-gateway", "spark-jobs"
EXECUTORS = 2
SERIAL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# Released jars need no verification.
UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
# The driver maps its classes from the archive of the other tests. It has a smaller heap than theirs.
ARCHIVE = {
    name: value.replace(" -Xmn512m", "")
    for name, value in SETTINGS.conf.items()
    if name in ("spark.driver.extraClassPath", "spark.driver.extraJavaOptions")
}
FOR_SPEED = {
    **SMALL_TABLES,
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    **ARCHIVE,
    "spark.executor.extraJavaOptions": f"{SERIAL} {UNVERIFIED}",
    "spark.ui.enabled": "false",
    # Both do some of the work, as no task waits for long for the one that it would rather be on.
    "spark.locality.wait": "0",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.kubernetes.allocation.batch.delay": "200ms",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What is known of one run of the job."""

    driver: Pod
    executors: list[Pod]
    status: Object
    # Rows by table: of the job in this process' machine alone, and of the one on Kubernetes.
    local: dict[str, list[Object]]
    distributed: dict[str, list[Object]]


@pytest.fixture(scope="module")
def ran(cluster, tmp_path_factory) -> Iterator[Ran]:
    require_java()
    directory = tmp_path_factory.mktemp("usage")
    lines = Story(31).lines(40)
    for number in range(4):
        Lake(directory).land(f"a-{number}", [*lines[number::4], *list(MALFORMED)[:2], lines[0]])
    for name in (NAMESPACE, JOBS):
        cluster.namespace(name)
    kubelet = Kubelet(cluster, tmp_path_factory.mktemp("pods"))
    with counted_locally(directory) as local, kubelet.running():
        install(cluster, values(directory, kubelet))
        status = run_job(cluster, kubelet)
        rows = local.communicate("\n", timeout=600)[0]
        assert local.returncode == 0
        driver, *executors = kubelet.pods
        yield Ran(driver, executors, status, *json.loads(rows))


@contextmanager
def counted_locally(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the same job on this machine alone, beside the other; a line has it tell what both have made."""
    module = "tests.integration.helm.local_usage"
    command = [sys.executable, "-m", module, str(directory), str(directory / "kubernetes")]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            # Its JVM ends with it.
            process.kill()


def values(directory: Path, kubelet: Kubelet) -> dict[str, Any]:
    usage = {
        "schedule": "0 0 1 1 *",
        "executors": EXECUTORS,
        "driverMemory": "640m",
        "executor": {"cores": "1", "memory": "512m"},
        "jars": f"{fetch_jars(user_cache(os.environ))}/*.jar",
        "sparkConf": FOR_SPEED,
    }
    return {
        # A container has an address of its own; here it is that of the first pod, which is the driver's.
        "listenHost": kubelet.address(1),
        "processDefaults": {"replicas": 1},
        "image": {"pullSecrets": ["registry"]},
        "config": {
            "usage": {"landing": f"{directory}/landing", "location": f"{directory}/kubernetes/tables"},
            "storages": [{"name": "usage", "prefix": str(directory), "vendor": "local"}],
        },
        "pipeline": {
            "namespace": JOBS,
            "image": {"pullPolicy": "Never"},
            # Without these two no pod comes to the node that runs any.
            "nodeSelector": {"kubernetes.io/hostname": kubelet.node},
            "tolerations": [{"key": "tests/loopback", "operator": "Exists"}],
            "extraEnv": [{"name": "TOLD", "value": "to drivers and executors"}],
            "cronJobs": {"usage": usage},
        },
    }


def install(cluster: Cluster, given: dict[str, Any]) -> None:
    env = {"KUBECONFIG": str(cluster.kubeconfig), "HELM_CACHE_HOME": "/nonexistent"}
    command = ["install", "sluice", str(CHART), "--namespace", NAMESPACE, "--values", "-"]
    run_helm("helm3", *command, stdin=yaml.safe_dump(given), env=env)


def run_job(cluster: Cluster, kubelet: Kubelet) -> Object:
    """Make a Job of the CronJob, as ``kubectl create job --from`` does, and return what it came to."""
    path = f"/apis/batch/v1/namespaces/{JOBS}"
    cron = cluster.api.get(f"{path}/cronjobs/sluice-pipeline-usage")
    spec = cron["spec"]["jobTemplate"]["spec"] | {"backoffLimit": 0}
    cluster.api.create(f"{path}/jobs", {"metadata": {"name": "usage"}, "spec": spec})

    def status() -> Object:
        found: Object = cluster.api.get(f"{path}/jobs/usage")["status"]
        return found

    def what() -> str:
        return f"the job has ended\n{told(cluster, kubelet)}"

    eventually(lambda: {"succeeded", "failed"} & status().keys(), what, seconds=600)
    assert status().get("succeeded") == 1, told(cluster, kubelet)
    return status()


def told(cluster: Cluster, kubelet: Kubelet) -> str:
    logs = [f"== {pod.name}\n{pod.log()[-6000:]}" for pod in kubelet.pods]
    return "\n".join([*cluster.complaints(JOBS), *logs])


def test_the_job_makes_the_tables_that_it_makes_on_one_machine(ran):
    assert ran.status["succeeded"] == 1
    assert len(ran.local["events"]) > 40
    assert {name for name, rows in ran.local.items() if rows} >= {"events", "quarantine", "usage_daily"}
    for name, rows in ran.local.items():
        assert sorted(map(repr, ran.distributed[name])) == sorted(map(repr, rows)), name


def test_all_executors_did_some_of_the_work(ran):
    assert len(ran.executors) == EXECUTORS
    for executor in ran.executors:
        assert "Finished task" in executor.log(), executor.log()[-4000:]


def test_the_driver_is_known_by_the_token_of_its_account_and_executors_have_none(ran):
    assert ran.driver.accounts == ["sluice-pipeline"]
    assert [executor.accounts for executor in ran.executors] == [[]] * EXECUTORS


def test_executors_are_the_pods_that_the_chart_describes(ran):
    driver = ran.driver.made
    for executor in (pod.made for pod in ran.executors):
        metadata, spec = executor["metadata"], executor["spec"]
        assert metadata["namespace"] == JOBS
        assert metadata["labels"]["spark-role"] == "executor"
        # The policy lets the pipeline's pods talk to each other by these.
        own = {key: value for key, value in driver["metadata"]["labels"].items() if key.startswith("app.")}
        assert own.items() <= metadata["labels"].items()
        assert [each["uid"] for each in metadata["ownerReferences"]] == [driver["metadata"]["uid"]]
        for key in ("serviceAccountName", "imagePullSecrets", "nodeSelector", "securityContext"):
            assert spec[key] == driver["spec"][key], key
        assert spec["serviceAccountName"] == "sluice-pipeline"
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False


def test_a_container_of_an_executor_is_as_closed_as_its_drivers_and_has_what_it_needs(ran):
    for pod in ran.executors:
        container, driver = pod.container, ran.driver.container
        for key in ("image", "imagePullPolicy", "securityContext"):
            assert container[key] == driver[key], key
        # What is asked for, and the 384 MiB that Spark adds at least.
        assert container["resources"] == {
            "requests": {"cpu": "1", "memory": "896Mi"},
            "limits": {"memory": "896Mi"},
        }
        assert {"name": "TOLD", "value": "to drivers and executors"} in container["env"]
        sources = {each["name"]: each for each in pod.made["spec"]["volumes"]}
        writable = {
            each["mountPath"]: sources[each["name"]]["emptyDir"].get("sizeLimit")
            for each in container["volumeMounts"]
            if "emptyDir" in sources[each["name"]]
        }
        # No disk of a node is filled by an executor: all that it can write to has a limit.
        assert writable == {"/tmp": "20Gi", "/var/lib/sluice/spark": "20Gi"}


def test_no_executor_is_left_when_the_job_is_done(cluster, ran):
    gone = {pod.name for pod in ran.executors}
    eventually(
        lambda: gone.isdisjoint(pod["metadata"]["name"] for pod in cluster.pods(JOBS)),
        "the executors are deleted",
    )
