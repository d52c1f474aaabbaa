"""Values that mean nothing, or nothing good, are refused before anything reaches a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.components import HELM3, HELM4
from tests.integration.helm.chart import Refused, render

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3, HELM4)]

SECRET = "never-to-be-told"


def _storage(**identity: Any) -> dict[str, Any]:
    return {"name": "lake", "prefix": "s3://lake", "vendor": "s3", "options": {"identity": identity}}


def _at(path: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    """Return values at a place."""
    for key in reversed(path):
        values = {key: values}
    return values


BY_SCHEMA: dict[str, tuple[dict[str, Any], str]] = {
    "a name that is not there": ({"replicas": 3}, "replicas"),
    "a misspelt name in a process": ({"processes": {"presign": {"replcas": 3}}}, "replcas"),
    "a misspelt name deep in a process": (
        {"processes": {"presign": {"autoscaling": {"podMetric": {"nam": "x"}}}}},
        "nam",
    ),
    "a misspelt name in the defaults": ({"processDefaults": {"resource": {}}}, "resource"),
    "a wrong type": ({"processes": {"edge": {"replicas": "three"}}}, "replicas"),
    "a process that runs nothing": ({"processes": {"edge": {"run": []}}}, "run"),
    "a service that does not exist": ({"processes": {"edge": {"run": ["gateway"]}}}, "run"),
    "a new process that does not say what it runs": ({"processes": {"other": {"replicas": 1}}}, "run"),
    "a name that is no name in Kubernetes": ({"processes": {"Edge_1": {"run": ["edge"]}}}, "Edge_1"),
    "root": ({"runAs": {"user": 0}}, "user"),
    "a misspelt setting of the gateway": ({"config": {"recipient": []}}, "recipient"),
    "a misspelt setting deep in the gateway's": (
        {"config": {"shares": [{"name": "s", "schemas": [{"name": "d", "table": []}]}]}},
        "table",
    ),
    "a misspelt setting of one process": ({"processes": {"edge": {"config": {"htp": {}}}}}, "htp"),
    "what the chart sets itself": ({"config": {"port": 9000}}, "port"),
    "keys among the settings": ({"config": {"keys": {"current": {}}}}, "keys"),
    "Redis among the settings": ({"config": {"cache": {"redis": {"url": "redis://r"}}}}, "redis"),
    "another kind of monitor": ({"monitoring": {"monitor": {"kind": "Scrape"}}}, "kind"),
    "another source of certificates": ({"tls": {"source": "vault"}}, "source"),
    "a port that is none": ({"networkPolicy": {"stores": {"ports": [70000]}}}, "ports"),
    "names of Secrets in Kubernetes' own spelling": (
        {"image": {"pullSecrets": [{"name": "x"}]}},
        "pullSecrets",
    ),
    "hosts of an ingress in Kubernetes' own spelling": ({"ingress": {"hosts": [{"host": "x"}]}}, "hosts"),
    "hosts of a route that are none": ({"httpRoute": {"hostnames": [{"name": "x"}]}}, "hostnames"),
    "sentinels that are none": ({"redis": {"sentinel": {"addresses": [{"host": "s"}]}}}, "addresses"),
    "a peer that is a text": ({"networkPolicy": {"clients": ["10.0.0.0/8"]}}, "clients"),
    "a time that is none": ({"httpRoute": {"timeouts": {"request": "soon"}}}, "request"),
    "an object without a kind": (
        {"extraObjects": [{"apiVersion": "v1", "metadata": {"name": "x"}}]},
        "kind",
    ),
    "an object without a name": (
        {"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}]},
        "name",
    ),
    "a misspelt option of a storage": ({"config": {"storages": [_storage(roleARN="r")]}}, "roleARN"),
    "an option of another vendor": (
        {"config": {"storages": [{**_storage(), "options": {"hierarchicalNamespace": True}}]}},
        "hierarchicalNamespace",
    ),
    "a secret as a plain text": (
        {"config": {"storages": [_storage(secretAccessKey=SECRET)]}},
        "secretAccessKey",
    ),
    **{
        f"a misspelt option of a storage in {'.'.join(where)}": (
            _at(where, {"storageOptions": {"lake": {"identity": {"roleARN": "r"}}}})
            | {"config": {"storages": [_storage()]}},
            "roleARN",
        )
        for where in (("processes", "presign"), ("processDefaults",), ("pipeline",))
    },
    "an image of a process without its end": ({"processes": {"edge": {"image": {"digest": "1"}}}}, "digest"),
    **{
        f"a process by the name of the chart's own {name}": (
            {"processes": {name: {"run": ["edge"]}, "edge": None}},
            name,
        )
        for name in ("redis", "pipeline", "pipeline-worker", "metrics", "deny", "ca", "dashboard-cache")
    },
}
BY_TEMPLATES: dict[str, tuple[dict[str, Any], str]] = {
    "a service in two processes": (
        {"processes": {"edge": {"run": ["edge", "catalog"]}}},
        "runs in catalog and in edge",
    ),
    "a service in none": ({"processes": {"vending": None}}, "vending runs nowhere"),
    "a service that nobody can call": ({"processes": {"vending": {"grpc": False}}}, "processes.vending.grpc"),
    "one secret for several processes": ({"keys": {"derived": True}}, "keys.derived"),
    "keys that Helm cannot make": ({"keys": {"create": True}}, "keys.create"),
    "two ways to Redis": (
        {"redis": {"url": "rediss://r:6379", "sentinel": {"addresses": ["s:26379"], "service": "x"}}},
        "url or sentinel",
    ),
    "the bundled Redis beside another": (
        {"redis": {"url": "rediss://r:6379", "bundled": {"enabled": True}}},
        "bundled.enabled",
    ),
    "a Redis that nobody may reach": (
        {"redis": {"url": "rediss://r:6379"}},
        r"networkPolicy.redis.to: .*ipBlock",
    ),
    "sentinels that nobody may reach": (
        {"redis": {"sentinel": {"addresses": ["s:26379"], "service": "x"}}},
        r"networkPolicy.redis.to: .*ipBlock",
    ),
    "options of a storage that is not there": (
        {"processes": {"presign": {"storageOptions": {"lake": {}}}}},
        "no storage by the name lake",
    ),
    "scaling by nothing": (
        {"processes": {"edge": {"autoscaling": {"enabled": True, "cpu": 0}}}},
        "needs something to scale by",
    ),
    "an ingress without a host": ({"ingress": {"enabled": True}}, "ingress.hosts"),
    "a route without a gateway": ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs"),
    "a claim without a name": ({"audit": {"volume": "existing"}}, "audit.existingClaim"),
    "a Spark application without an image for it": (
        {"pipeline": {"namespace": "spark", "sparkApplication": {"schedule": "@hourly"}}},
        "pipeline.sparkApplication.image",
    ),
    "pods of Spark in no namespace of their own": (
        {"pipeline": {"cronJobs": {"usage": {"schedule": "@hourly"}}}},
        "pipeline.namespace: .* name another namespace",
    ),
    "pods of Spark in the gateway's namespace": (
        {"pipeline": {"namespace": "sluice", "sparkApplication": {"schedule": "@hourly", "image": "i"}}},
        "pipeline.namespace: .* name another namespace",
    ),
    "a worker's executors in the gateway's namespace": (
        {"config": {"pipeline": {"spark": {"master": "k8s://api"}}}, "pipeline": {"worker": {"replicas": 1}}},
        "pipeline.namespace: .* name another namespace",
    ),
    "a token in a ConfigMap": (
        {"config": {"authorization": {"bearerToken": SECRET}}},
        "SLUICE_AUTHORIZATION_BEARER_TOKEN_FILE",
    ),
    "a token in one process' ConfigMap": (
        {"processes": {"catalog": {"config": {"authorization": {"bearerToken": SECRET}}}}},
        "SLUICE_AUTHORIZATION_BEARER_TOKEN_FILE",
    ),
    "a key of a store in a ConfigMap": (
        {"config": {"storages": [_storage(secretAccessKey={"value": SECRET})]}},
        r"the storage lake: options.identity.secretAccessKey.value: .* {file: ",
    ),
    "a key of a store in one process' ConfigMap": (
        {
            "config": {"storages": [_storage()]},
            "processes": {"presign": {"storageOptions": {"lake": {"apiToken": {"value": SECRET}}}}},
        },
        r"the storage lake: options.apiToken.value: .* {file: ",
    ),
    "a key of a store in the pipeline's ConfigMap": (
        {
            "config": {"storages": [_storage()]},
            "pipeline": {
                "worker": {"replicas": 1},
                "storageOptions": {"lake": {"signing": {"secret": {"value": SECRET}}}},
            },
        },
        r"the storage lake: options.signing.secret.value: .* {file: ",
    ),
    "an alert that there is not": (
        {"monitoring": {"rules": {"enabled": True, "disabled": ["SluiceTokenExpires", "SluiceAbsent"]}}},
        "monitoring.rules.disabled: there is no alert SluiceTokenExpires\n",
    ),
    "a secret of no store": ({"externalSecrets": {"secrets": {"a": "b"}}}, "storeRef.name"),
}


@pytest.mark.parametrize("case", BY_SCHEMA)
def test_the_schema_names_what_is_wrong(case):
    values, named = BY_SCHEMA[case]
    with pytest.raises(Refused, match=rf"(?s)values don't meet the specifications.*{named}") as refused:
        render(values=values)
    assert SECRET not in str(refused.value)


def test_options_of_a_vendor_that_is_not_ours_are_its_own():
    storage = {**_storage(), "vendor": "tape", "options": {"robot": 3}}
    own = {"presign": {"storageOptions": {"lake": {"robot": 4}}}}
    settings = render(values={"config": {"storages": [storage]}, "processes": own})
    assert "robot: 4" in settings.of("ConfigMap")["sluice-presign"]["data"]["server.yaml"]


@pytest.mark.parametrize("case", ["a misspelt name in a process", "a wrong type", "root"])
def test_helm_4_refuses_the_same(case):
    values, named = BY_SCHEMA[case]
    with pytest.raises(Refused, match=rf"(?s)values don't meet the specifications.*{named}"):
        render(values=values, helm="helm4")


@pytest.mark.parametrize("case", BY_TEMPLATES)
def test_the_templates_say_what_to_do(case):
    values, named = BY_TEMPLATES[case]
    with pytest.raises(Refused, match=named) as refused:
        render(values=values)
    assert SECRET not in str(refused.value)


def test_a_cluster_that_is_too_old_is_refused():
    with pytest.raises(Refused, match="kubeVersion"):
        render(version="1.29.0")
