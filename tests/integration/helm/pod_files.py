"""A pod's files below a directory of this machine: what the chart mounts, and Secrets that it only names."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.integration.helm.chart import Object, Rendered, container, env_of, pod

# Where the chart mounts anything of the gateway's.
_ROOTS = ("/etc/sluice", "/var/lib/sluice")

Secrets = Mapping[str, Mapping[str, str]]


class PodFiles:
    """What a pod of a workload finds on its disk and in its environment."""

    def __init__(self, root: Path, workload: Object, rendered: Rendered, given: Secrets) -> None:
        self._root = root
        self._rendered = rendered
        self._given = given
        volumes = {volume["name"]: volume for volume in pod(workload)["volumes"]}
        for mount in container(workload)["volumeMounts"]:
            place = self._place(mount["mountPath"])
            place.mkdir(parents=True, exist_ok=True)
            for name, content in self._content(volumes[mount["name"]]):
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(content)
        self.env = {name: self._moved(value) for name, value in env_of(workload).items()}

    @property
    def config_file(self) -> Path:
        return self._place("/etc/sluice/config/server.yaml")

    def _place(self, path: str) -> Path:
        return self._root / path.removeprefix("/")

    def _moved(self, text: str) -> str:
        """Return a text in which the pod's paths are those of this machine."""
        for root in _ROOTS:
            text = text.replace(root, str(self._place(root)))
        return text

    def _content(self, volume: Object) -> Iterator[tuple[str, str]]:
        """Give the files of a volume and what is in them."""
        if "configMap" in volume:
            source = self._rendered.of("ConfigMap")[volume["configMap"]["name"]]
            yield from ((name, self._moved(text)) for name, text in source["data"].items())
        elif "secret" in volume:
            yield from self._secret(volume["secret"]["secretName"], volume["secret"].get("items"))
        for source in volume.get("projected", {}).get("sources", ()):
            (part,) = source.values()
            yield from self._secret(part["name"], part["items"])

    def _secret(self, name: str, items: list[Object] | None) -> Iterator[tuple[str, str]]:
        entries = self._given[name]
        if items is None:
            yield from entries.items()
        else:
            yield from ((item["path"], entries[item["key"]]) for item in items)


def new_keys() -> dict[str, str]:
    """Return the entries of a Secret of keys, as docs/kubernetes.md has it made."""
    pair = Ed25519PrivateKey.generate()
    private = pair.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = pair.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    names = ("listPage", "filePage", "refresh", "localUrl", "sealing")
    return {
        **{name: secrets.token_urlsafe(32) for name in names},
        "grantPrivateKey": private.decode(),
        "grantPublicKey": public.decode(),
    }
