"""A control plane of Kubernetes on loopback, with nodes and pods that kwok pretends to run."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.installed import installed
from tests.integration.helm.chart import GO_ENV
from tests.integration.helm.kubernetes_api import KubernetesApi, Object
from tests.ports import free_ports
from tests.stores.process import listens, retried, running
from tests.waiting import START_SECONDS, eventually

_NODES = 3
# The label of nodes that kwok looks after.
_PRETENDED = "tests/pretended"
_KWOK = "sigs.k8s.io/kwok@v0.8.0"
# How kwok has nodes become ready, and pods run and end.
_STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
# Nothing reads endpoints, because no traffic flows; each change of a pod would write some.
_UNUSED_CONTROLLERS = (
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running control plane."""

    api: KubernetesApi
    kubeconfig: Path

    def namespace(self, name: str) -> None:
        """Make a namespace that takes no pods but those of the restricted kind."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        body = {"metadata": {"name": name, "labels": labels}}
        self.api.create("/api/v1/namespaces", body)
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
        eventually(
            lambda: bool(self.api.list(accounts)), f"{name} has an account for pods", seconds=START_SECONDS
        )

    def pods(self, namespace: str) -> list[Object]:
        return self.api.list(f"/api/v1/namespaces/{namespace}/pods")

    def complaints(self, namespace: str) -> list[str]:
        """Return what went wrong in a namespace, as Kubernetes tells it."""
        events = self.api.list(f"/api/v1/namespaces/{namespace}/events")
        return sorted({event["message"] for event in events if event["type"] == "Warning"})


@contextmanager
def running_cluster(directory: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield stack.enter_context(retried(lambda: _running(directory)))


@contextmanager
def _running(directory: Path) -> Iterator[Cluster]:
    etcd, peer, port = free_ports(3)
    token = secrets.token_hex(16)
    files = _Files(directory, token, port)
    api = KubernetesApi(port, token)
    with ExitStack() as stack:
        stack.callback(api.close)
        stack.enter_context(_etcd(directory, etcd, peer))
        stack.enter_context(
            running(
                [installed("kube-apiserver"), *_api_server(files, etcd, port)],
                log_file=directory / "kube-apiserver.log",
                ready=api.is_ready,
                env=GO_ENV,
            )
        )
        _start(stack, files, "kube-controller-manager", *_controllers(files))
        _start(stack, files, "kube-scheduler", "--leader-elect=false", "--secure-port=0")
        _start(
            stack,
            files,
            "kwok",
            f"--manage-nodes-with-label-selector={_PRETENDED}=true",
            f"--config={files.stages}",
        )
        _add_nodes(api)
        yield Cluster(api, files.kubeconfig)


@contextmanager
def _etcd(directory: Path, port: int, peer: int) -> Iterator[None]:
    here, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    options = {
        "data-dir": str(directory / "etcd"),
        "listen-client-urls": here,
        "advertise-client-urls": here,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"default={peers}",
        # Nothing is to outlive the tests.
        "unsafe-no-fsync": "true",
    }
    command = [str(installed("etcd")), *(f"--{key}={value}" for key, value in options.items())]
    with running(command, log_file=directory / "etcd.log", ready=lambda: listens(port), env=GO_ENV):
        yield


def _api_server(files: _Files, etcd: int, port: int) -> list[str]:
    options = {
        "etcd-servers": f"http://127.0.0.1:{etcd}",
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",
        "secure-port": port,
        "cert-dir": files.certificates,
        "token-auth-file": files.tokens,
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": files.account_key,
        "service-account-signing-key-file": files.account_key,
        "service-cluster-ip-range": "10.96.0.0/16",
        # Two releases and a few controllers are no load that needs queues.
        "enable-priority-and-fairness": "false",
    }
    return [f"--{key}={value}" for key, value in options.items()]


def _controllers(files: _Files) -> list[str]:
    return [
        "--leader-elect=false",
        "--secure-port=0",
        f"--service-account-private-key-file={files.account_key}",
        # For pods that have a token: by whom the API server is to be known.
        f"--root-ca-file={files.certificates / 'apiserver.crt'}",
        # A machine that is too busy for heartbeats is not one whose nodes are gone.
        "--node-monitor-grace-period=30m",
        f"--controllers=*,{','.join(f'-{name}' for name in _UNUSED_CONTROLLERS)}",
        "--horizontal-pod-autoscaler-sync-period=3s",
        "--pvclaimbinder-sync-period=5s",
    ]


def _start(stack: ExitStack, files: _Files, name: str, *options: str) -> None:
    command = [str(installed(name)), f"--kubeconfig={files.kubeconfig}", *options]
    # These have no port: that they work is seen by what becomes of nodes and pods.
    log = files.directory / f"{name}.log"
    stack.enter_context(running(command, log_file=log, ready=lambda: True, env=GO_ENV))


def _add_nodes(api: KubernetesApi) -> None:
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "1Ti"}
    for number in range(_NODES):
        name = f"node-{number}"
        labels = {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": f"zone-{number}",
            _PRETENDED: "true",
        }
        status = {"capacity": capacity, "allocatable": capacity}
        api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status})
    eventually(
        lambda: all(map(_is_ready, api.list("/api/v1/nodes"))), "all nodes are ready", seconds=START_SECONDS
    )


def _is_ready(node: Object) -> bool:
    conditions = node["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


class _Files:
    """What the programs are started with."""

    def __init__(self, directory: Path, token: str, port: int) -> None:
        self.directory = directory
        self.certificates = directory / "certificates"
        self.tokens = directory / "tokens.csv"
        self.tokens.write_text(f'{token},admin,admin,"system:masters"\n')
        self.account_key = directory / "accounts.pem"
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.account_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(token, port)))
        self.stages = directory / "stages.yaml"
        self.stages.write_text("\n---\n".join(_stages()))


def _kubeconfig(token: str, port: int) -> Object:
    server = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": server}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }


def _stages() -> Iterator[str]:
    for stage in _STAGES:
        folder = module_directory(_KWOK) / "kustomize" / "stage" / stage
        names = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        yield from ((folder / name).read_text() for name in names)


def module_directory(module: str) -> Path:
    """Return where Go keeps a module, after fetching it if need be."""
    command = ["go", "mod", "download", "-json", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}")
    if "Dir" not in found:
        pytest.fail(f"{module} cannot be had: {found.get('Error', done.stderr)}", pytrace=False)
    return Path(found["Dir"])
