"""Volumes for the claims of examples, as nobody here makes any on demand."""

from __future__ import annotations

from tests.integration.helm.control_plane import Cluster

# As the examples name them.
_CLASSES = ("gp3", "managed-csi-premium", "premium-rwo")
_SHARED = "shared"
# Each pod of a release has one, and so has each that replaces it; none is used twice.
_EACH = 60


def add_volumes(cluster: Cluster) -> None:
    _add_class(cluster, _SHARED)
    for name in _CLASSES:
        _add_class(cluster, name)
        for number in range(_EACH):
            _add(cluster, f"{name}-{number}", name, "ReadWriteOnce")


def add_shared_claim(cluster: Cluster, namespace: str, name: str) -> None:
    """Make a claim that stays, with its volume."""
    _add(cluster, f"{namespace}-{name}", _SHARED, "ReadWriteMany")
    spec = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": _SHARED,
        "resources": {"requests": {"storage": "20Gi"}},
    }
    body = {"metadata": {"name": name}, "spec": spec}
    cluster.api.create(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", body)


def _add_class(cluster: Cluster, name: str) -> None:
    body = {"metadata": {"name": name}, "provisioner": "kubernetes.io/no-provisioner"}
    cluster.api.create("/apis/storage.k8s.io/v1/storageclasses", body)


def _add(cluster: Cluster, name: str, storage_class: str, mode: str) -> None:
    spec = {
        "capacity": {"storage": "20Gi"},
        "accessModes": [mode],
        "storageClassName": storage_class,
        "hostPath": {"path": f"/nonexistent/{name}"},
    }
    cluster.api.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
