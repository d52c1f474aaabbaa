"""What of a release changes, and who is restarted for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.components import HELM3
from tests.integration.helm.chart import Object, Rendered, container, pod, render

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]

DIGEST = f"sha256:{'0' * 64}"
OTHER = f"sha256:{'1' * 64}"
SERVICES = ("catalog", "snapshot", "presign", "vending")


def images(**values: Any) -> dict[str, str]:
    processes = render(values=values).processes
    return {name: container(each)["image"] for name, each in processes.items()}


def test_edges_stay_at_the_old_version_while_the_services_have_the_new_one():
    found = images(image={"tag": "2"}, processes={"edge": {"image": {"tag": "1"}}})
    assert found == {"edge": "sluice:1", **dict.fromkeys(SERVICES, "sluice:2")}


def test_edges_are_not_even_restarted_while_the_services_are_upgraded():
    before = render().processes
    version = container(before["edge"])["image"].partition(":")[2]
    given = {"image": {"tag": "2"}, "processes": {"edge": {"image": {"tag": version}}}}
    after = render(values=given).processes
    assert {name for name in after if after[name] != before[name]} == set(SERVICES)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, f"r/sluice@{DIGEST}"),
        ({"tag": "1"}, "r/sluice:1"),
        ({"digest": OTHER}, f"r/sluice@{OTHER}"),
        ({"tag": "1", "digest": OTHER}, f"r/sluice@{OTHER}"),
        ({"repository": "patched"}, f"r/patched@{DIGEST}"),
        ({"repository": "patched", "tag": "1"}, "r/patched:1"),
    ],
)
def test_a_process_has_what_it_is_given_of_an_image_and_the_rest_from_all(own, expected):
    found = images(image={"registry": "r", "digest": DIGEST}, processes={"edge": {"image": own}})
    assert found == {"edge": expected, **dict.fromkeys(SERVICES, f"r/sluice@{DIGEST}")}


def test_where_no_cluster_can_be_asked_the_number_of_pods_is_the_autoscalers_alone():
    scaled = {"presign": {"autoscaling": {"enabled": True}}}
    processes = render(values={"processes": scaled}).processes
    assert "replicas" not in processes["presign"]["spec"]
    assert processes["vending"]["spec"]["replicas"] == 2


@pytest.mark.parametrize("seconds", [0, 7])
def test_a_pod_waits_before_it_stops_unless_it_is_not_to(seconds):
    values = {"processDefaults": {"preStopSeconds": seconds}}
    for process in render(values=values).processes.values():
        hook = container(process).get("lifecycle")
        # Kubernetes before 1.33 takes no sleep of 0 seconds.
        assert hook == ({"preStop": {"sleep": {"seconds": seconds}}} if seconds else None)


def watched(rendered: Rendered) -> dict[str, set[str]]:
    """Return the Secrets for which Reloader restarts each process."""
    key = "secret.reloader.stakater.com/reload"
    return {
        name: set(process["metadata"]["annotations"][key].split(","))
        for name, process in rendered.processes.items()
    }


@pytest.mark.parametrize("example", ["aws", "minio"])
def test_a_process_is_restarted_for_every_secret_that_it_reads_as_it_starts_and_for_no_other(example):
    rendered = render(example, values={"keys": {"reloader": True}})
    expected = {name: _read_at_start(process) for name, process in rendered.processes.items()}
    assert watched(rendered) == expected
    assert len(expected["presign"]) > len(expected["edge"]) == 2


def test_a_token_that_a_variable_names_is_read_at_the_start_too():
    catalog = {
        "secretFiles": {"bearer": "token", "lake": "keys-of-the-lake"},
        "extraEnv": [
            {"name": "SLUICE_AUTHORIZATION_BEARER_TOKEN_FILE", "value": "/etc/sluice/secrets/bearer/token"}
        ],
    }
    found = watched(render(values={"keys": {"reloader": True}, "processes": {"catalog": catalog}}))
    assert found["catalog"] == {"sluice-keys", "token"}
    assert found["edge"] == {"sluice-keys"}


def _read_at_start(process: Object) -> set[str]:
    """Return the Secrets of keys and of Redis that a process' pods have."""
    volumes = [each for each in pod(process)["volumes"] if each["name"] in ("keys", "redis")]
    return {source["secret"]["name"] for each in volumes for source in each["projected"]["sources"]}
