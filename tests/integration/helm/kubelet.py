"""A stand-in for a kubelet: runs the containers of one node's pods as processes of this machine, on loopback.

It does what pods of Spark need and no more: one container after the init containers, and of volumes
ConfigMaps, empty directories and what is projected. There is no image: a container has the programs of this
environment and none of its variables. It finds what is mounted, as the paths of mounts are replaced in its
command and its variables.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from subprocess import TimeoutExpired
from urllib.error import HTTPError

from tests.integration.helm.control_plane import Cluster
from tests.integration.helm.kubernetes_api import Object
from tests.stores.process import ServerProcess, running

# Where the API server puts what a pod shows to it, and what the client of Spark can be told in place of that.
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_CLIENT = {"KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN": "token", "KUBERNETES_CERTS_CA_FILE": "ca.crt"}
_API = "https://kubernetes.default.svc:443"
_POLL_SECONDS = 0.5
_TERMINATION_SECONDS = 10
_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "100", "ephemeral-storage": "1Ti"}


class Kubelet:
    """A node of a cluster, which takes pods that tolerate its taint only."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.node = f"loopback-{secrets.token_hex(3)}"
        self._network = f"127.{20 + secrets.randbelow(200)}.{secrets.randbelow(250)}"
        self._addresses = map(self.address, itertools.count(1))
        self._pods: dict[str, Pod] = {}
        self._stop = threading.Event()

    def address(self, number: int) -> str:
        """Return the address of a pod, which are counted from 1."""
        return f"{self._network}.{number}"

    @property
    def pods(self) -> list[Pod]:
        """Return all pods that have been here, in order."""
        return list(self._pods.values())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be there until the block is left; then everything that was started ends."""
        api = self.cluster.api
        api.create("/api/v1/nodes", _node(self.node))
        thread = threading.Thread(target=self._watch, name=self.node, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            for pod in self.pods:
                pod.stop()
            for pod in self.pods:
                pod.thread.join()
            api.delete(f"/api/v1/nodes/{self.node}")

    def _watch(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            try:
                found = self.cluster.api.list(f"/api/v1/pods?fieldSelector=spec.nodeName={self.node}")
            except OSError:
                # The API server is too busy to answer in time.
                continue
            here = {each["metadata"]["uid"]: each for each in found}
            for uid, each in here.items():
                if uid not in self._pods:
                    self._pods[uid] = Pod(self, each, next(self._addresses))
                    self._pods[uid].thread.start()
                if "deletionTimestamp" in each["metadata"]:
                    self._pods[uid].stop()
            for uid, pod in self._pods.items():
                if uid not in here:
                    pod.stop()


class Pod:
    """One pod, from its first process to its last."""

    def __init__(self, kubelet: Kubelet, made: Object, address: str) -> None:
        # As it was when it came to the node.
        self.made = made
        self.address = address
        self.accounts: list[str] = []
        self.thread = threading.Thread(target=self._live, name=self.name, daemon=True)
        self._kubelet = kubelet
        self._api = kubelet.cluster.api
        self._directory = kubelet.directory / self.name
        self._stop = threading.Event()

    @property
    def name(self) -> str:
        name: str = self.made["metadata"]["name"]
        return name

    @property
    def container(self) -> Object:
        (container,) = self.made["spec"]["containers"]
        found: Object = container
        return found

    def stop(self) -> None:
        """Have the process asked to end, and killed where it does not."""
        self._stop.set()

    def log(self) -> str:
        """Return what the containers have written."""
        return "\n".join(file.read_text(errors="replace") for file in sorted(self._directory.glob("*.log")))

    def _live(self) -> None:
        self._report("Pending")
        try:
            volumes = {each["name"]: self._volume(each) for each in self.made["spec"]["volumes"]}
            containers = [*self.made["spec"].get("initContainers", ()), self.container]
            codes = (self._run(number, each, volumes) for number, each in enumerate(containers))
            # No container is started after one that has failed.
            code = next(filter(None, codes), 0)
        except Exception as exc:  # noqa: BLE001 -- whatever it is, the pod has failed, and its log says why
            self._directory.mkdir(parents=True, exist_ok=True)
            (self._directory / "kubelet.log").write_text(f"the stand-in for a kubelet: {exc!r}\n")
            code = 1
        self._report("Failed" if code else "Succeeded", code)
        # Until it is deleted, a pod that has ended is there to be looked at.
        self._stop.wait()
        self._api.delete(f"{self._path}?gracePeriodSeconds=0")

    def _run(self, number: int, container: Object, volumes: Mapping[str, Path]) -> int:
        """Run a container, and return what it ends with."""
        places = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
        moved = _Moved(places, self._api.base)
        variables = self._variables(container)
        line = [*container.get("command", ()), *container.get("args", ())]
        command = [moved.text(_expanded(part, variables)) for part in line]
        env = {name: moved.text(value) for name, value in variables.items()}
        if _ACCOUNT in places:
            env |= {name: str(places[_ACCOUNT] / file) for name, file in _CLIENT.items()}
        home = moved.text(container.get("workingDir", "/var/lib/sluice"))
        log_file = self._directory / f"{number}-{container['name']}.log"
        with running(_in_a_container(command, env, home), log_file=log_file, ready=lambda: True) as process:
            if container is self.container:
                self._report("Running")
            return self._wait(process)

    def _wait(self, process: ServerProcess) -> int:
        while process.is_running() and not self._stop.wait(_POLL_SECONDS):
            pass
        with suppress(ProcessLookupError, TimeoutExpired):
            if process.is_running():
                os.killpg(process.pid, signal.SIGTERM)
                process.process.wait(_TERMINATION_SECONDS)
        code = process.process.poll()
        return -signal.SIGKILL if code is None else code

    def _variables(self, container: Object) -> dict[str, str]:
        known = {"status.podIP": self.address, "metadata.name": self.name}
        found: dict[str, str] = {}
        for each in container.get("env", ()):
            if "valueFrom" in each:
                found[each["name"]] = known[each["valueFrom"]["fieldRef"]["fieldPath"]]
            else:
                found[each["name"]] = _expanded(each.get("value", ""), found)
        return found

    def _volume(self, volume: Object) -> Path:
        place: Path = self._directory / "volumes" / volume["name"]
        place.mkdir(parents=True)
        for name, text in self._content(volume):
            (place / name).write_text(text)
        return place

    def _content(self, volume: Object) -> Iterator[tuple[str, str]]:
        """Give the files of a volume and what is in them."""
        if "configMap" in volume:
            yield from self._config_map(volume["configMap"])
        elif "projected" in volume:
            for source in volume["projected"]["sources"]:
                yield from self._projected(source)
        else:
            assert "emptyDir" in volume, volume

    def _projected(self, source: Object) -> Iterator[tuple[str, str]]:
        if "serviceAccountToken" in source:
            asked = source["serviceAccountToken"]
            yield asked["path"], self._token(asked["expirationSeconds"])
        elif "configMap" in source:
            yield from self._config_map(source["configMap"])
        else:
            (item,) = source["downwardAPI"]["items"]
            assert item["fieldRef"]["fieldPath"] == "metadata.namespace"
            yield item["path"], self._namespace

    def _config_map(self, asked: Object) -> Iterator[tuple[str, str]]:
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{asked['name']}"
        # Spark makes that of its executors after these.
        while not (found := self._api.find(path)) and not self._stop.wait(_POLL_SECONDS):
            pass
        data = found["data"] if found else {}
        paths = {item["key"]: item["path"] for item in asked.get("items", ())} or {key: key for key in data}
        yield from ((path, data[key]) for key, path in paths.items())

    def _token(self, seconds: int) -> str:
        """Return a token of the pod's account, which is good as long as the pod is there."""
        account = self.made["spec"]["serviceAccountName"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": self.made["metadata"]["uid"]}
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
        spec = {"expirationSeconds": seconds, "boundObjectRef": bound}
        token: str = self._api.create(path, {"spec": spec})["status"]["token"]
        self.accounts.append(account)
        return token

    def _report(self, phase: str, code: int = 0) -> None:
        """Tell the API server how the pod is; it may be gone by now."""
        try:
            self._api.patch(f"{self._path}/status", {"status": _status(self, phase, code)})
        except HTTPError as exc:
            if exc.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    @property
    def _namespace(self) -> str:
        namespace: str = self.made["metadata"]["namespace"]
        return namespace

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods/{self.name}"


class _Moved:
    """Texts of a container in which its paths and the API server's address are those of this machine."""

    def __init__(self, places: Mapping[str, Path], api: str) -> None:
        self._places = places
        self._api = api
        longest_first = sorted(places, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, longest_first))})(?![\w.-])")

    def text(self, text: str) -> str:
        moved = self._pattern.sub(lambda match: str(self._places[match[1]]), text)
        return moved.replace(_API, self._api)


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with $(NAME) replaced, as Kubernetes does it."""
    return re.sub(r"\$\((\w+)\)", lambda match: variables.get(match[1], match[0]), text)


def _in_a_container(command: Sequence[str], env: Mapping[str, str], directory: str) -> list[str]:
    """Return a command line with the programs of this environment, and none of its variables."""
    path = f"{Path(sys.prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    java = {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    variables = [f"{name}={value}" for name, value in {"PATH": path, **java, **env}.items()]
    return ["env", "-i", "-C", directory, *variables, *command]


def _status(pod: Pod, phase: str, code: int) -> Object:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = "True" if phase == "Running" else "False"
    states: dict[str, Object] = {
        "Pending": {"waiting": {"reason": "PodInitializing"}},
        "Running": {"running": {"startedAt": now}},
    }
    ended = {
        "terminated": {
            "exitCode": abs(code),
            "finishedAt": now,
            "reason": "Completed" if not code else "Error",
        }
    }
    container = {
        "name": pod.container["name"],
        "image": pod.container["image"],
        "imageID": "",
        "ready": phase == "Running",
        "restartCount": 0,
        "state": states.get(phase, ended),
    }
    return {
        "phase": phase,
        "startTime": now,
        "hostIP": "127.0.0.1",
        "podIP": pod.address,
        "podIPs": [{"ip": pod.address}],
        "conditions": [
            {"type": kind, "status": ready} for kind in ("Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [container],
    }


def _node(name: str) -> Object:
    taint = {"key": "tests/loopback", "effect": "NoSchedule"}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": [taint]},
        "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY, "conditions": [ready]},
    }
