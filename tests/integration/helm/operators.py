"""The kinds that operators define, from their own sources if possible, so that no object goes unchecked."""

from __future__ import annotations

import yaml

from tests.integration.helm.control_plane import Cluster, module_directory
from tests.integration.helm.gke import gke_definitions
from tests.waiting import START_SECONDS, eventually

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_FILES = {
    "github.com/cert-manager/cert-manager@v1.21.2": (
        "deploy/crds/cert-manager.io_certificates.yaml",
        "deploy/crds/cert-manager.io_issuers.yaml",
    ),
    "sigs.k8s.io/gateway-api@v1.6.3": ("config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",),
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": (
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    "github.com/external-secrets/external-secrets@v1.3.2": (
        "config/crds/bases/external-secrets.io_externalsecrets.yaml",
    ),
}


def define_kinds(cluster: Cluster) -> None:
    for module, files in _FILES.items():
        directory = module_directory(module)
        for file in files:
            cluster.api.create(_DEFINITIONS, yaml.safe_load((directory / file).read_text()))
    for definition in gke_definitions():
        cluster.api.create(_DEFINITIONS, definition)
    eventually(lambda: _established(cluster), "the operators' kinds are established", seconds=START_SECONDS)


def _established(cluster: Cluster) -> bool:
    found = cluster.api.list(_DEFINITIONS)
    conditions = [
        {each["type"]: each["status"] for each in one["status"].get("conditions") or ()} for one in found
    ]
    return all(each.get("Established") == "True" for each in conditions)
