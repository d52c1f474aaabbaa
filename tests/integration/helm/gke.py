"""The kinds that GKE defines for its load balancers, with the fields that examples use.

Its own definitions (GoogleCloudPlatform/gke-gateway-api) are in no module that Go can fetch: these are
written from them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.integration.helm.kubernetes_api import Object


def gke_definitions() -> Iterator[Object]:
    check = _section((), requestPath={"type": "string", "pattern": "^/"}, port=_number(1, 65535))
    config = _section(("type", "httpHealthCheck"), type={"type": "string"}, httpHealthCheck=check)
    yield _definition("HealthCheckPolicy", "healthcheckpolicies", _section((), config=config))
    draining = _section((), drainingTimeoutSec=_number(0, 3600))
    settings = _section((), timeoutSec=_number(1, 2**31 - 1), connectionDraining=draining)
    yield _definition("GCPBackendPolicy", "gcpbackendpolicies", settings)


def _definition(kind: str, plural: str, settings: Object) -> Object:
    text = {"type": "string", "maxLength": 253}
    target = _section(("group", "kind", "name"), group=text, kind=text, name=text)
    spec = _section(("targetRef",), default=settings, targetRef=target)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.networking.gke.io"},
        "spec": {
            "group": "networking.gke.io",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _section(("spec",), spec=spec)},
                }
            ],
        },
    }


def _section(required: tuple[str, ...], /, **properties: Object) -> Object:
    whole: Object = {"type": "object", "properties": properties}
    return {**whole, "required": [*required]} if required else whole


def _number(least: int, most: int) -> Object:
    return {"type": "integer", "minimum": least, "maximum": most}
