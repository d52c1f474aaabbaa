"""A release by Helm 3 and 4 on a real Kubernetes API, in namespaces with restricted Pod Security."""

from __future__ import annotations

import pytest
import yaml

from tests.components import HELM3, HELM4, KUBERNETES
from tests.integration.helm.chart import CHART, EXAMPLES, Object, Refused, Values, example, run_helm
from tests.integration.helm.control_plane import Cluster
from tests.integration.helm.volumes import add_shared_claim

pytestmark = [pytest.mark.system, pytest.mark.component(KUBERNETES)]

VERSIONS = [
    pytest.param("helm3", marks=pytest.mark.component(HELM3)),
    pytest.param("helm4", marks=pytest.mark.component(HELM4)),
]
CHANGE = {"processDefaults": {"podAnnotations": {"example.com/change": "1"}}}


class Release:
    """One installation in a namespace of its own."""

    def __init__(self, cluster: Cluster, helm: str, values: str) -> None:
        self._cluster = cluster
        self._helm = helm
        self._files = [] if values == "default" else ["--values", str(example(values))]
        self.namespace = f"{values}-{helm}"
        cluster.namespace(self.namespace)
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

    def changed(self) -> set[str | None]:
        """Return what pods have of the change."""
        pods = self._cluster.pods(self.namespace)
        return {each["metadata"]["annotations"].get("example.com/change") for each in pods}

    def _run(self, *arguments: str, stdin: str = "") -> str:
        where = ["--namespace", self.namespace, "--wait", "--timeout", "90s"]
        env = {"KUBECONFIG": str(self._cluster.kubeconfig), "HELM_CACHE_HOME": "/nonexistent"}
        try:
            return run_helm(self._helm, *arguments, *where, stdin=stdin, env=env)
        except Refused as exc:
            raise AssertionError(f"{exc}\n{self._cluster.complaints(self.namespace)}") from exc


@pytest.mark.parametrize("helm", VERSIONS)
@pytest.mark.parametrize("values", ["default", *EXAMPLES])
def test_a_release_lives_and_ends(cluster, helm, values):
    release = Release(cluster, helm, values)
    release.install()
    pods = release.pods()
    assert pods
    assert {each["status"]["phase"] for each in pods} == {"Running"}
    release.upgrade(CHANGE)
    assert "1" in release.changed()
    release.rollback()
    assert release.changed() == {None}
    release.uninstall()
    assert release.pods() == []
