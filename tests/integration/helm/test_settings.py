"""What the chart makes of its values is what the gateway wants: its own loader says so, for every process."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.adapters.config_check import read_whole
from gateway.config.load import Draft
from gateway.config.purpose import GRANT_SIGNER, GRANT_VERIFIERS, PURPOSES
from gateway.config.schema import ServiceName
from tests.components import HELM3
from tests.integration.helm.chart import EXAMPLES, Rendered, env_of, pod, render
from tests.integration.helm.pod_files import PodFiles, new_keys
from tests.repository import ROOT

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]

NONE_OF_FIVE = dict.fromkeys(("edge", "catalog", "snapshot", "presign", "vending"))
RECIPIENTS = [{"name": "acme", "tokens": [{"hash": f"sha256:{'0' * 64}"}]}]
WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "default": ((), {}),
    **{name: ((name,), {}) for name in EXAMPLES},
    "one process that platform services call": (
        (),
        {
            "processes": {"gateway": {"run": [service.value for service in ServiceName]}, **NONE_OF_FIVE},
            "config": {"recipients": RECIPIENTS},
        },
    ),
    "two processes": (
        (),
        {
            "processes": {
                "front": {"run": ["edge", "catalog"]},
                "back": {"run": ["snapshot", "presign", "vending"]},
                **NONE_OF_FIVE,
            }
        },
    ),
    "keys in rotation": ((), {"keys": {"previousSecretName": "sluice-keys-2"}}),
    "a change of authority": ((), {"tls": {"caBundle": {"name": "authorities", "key": "both.pem"}}}),
    "IPv6": ((), {"listenHost": "::"}),
}
# Warned of on purpose: the default values have no address for recipients, and trials a Redis without TLS.
WARNINGS = {
    **dict.fromkeys((name for name in WAYS if name not in EXAMPLES), ("publicUrl",)),
    "trial": ("SLUICE_CACHE_REDIS_URL",),
}


@pytest.fixture(scope="module", params=WAYS)
def way(request) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def rendered(way) -> Rendered:
    files, values = WAYS[way]
    return render(*files, values=values)


@pytest.fixture(scope="module")
def drafts(rendered, tmp_path_factory) -> Mapping[str, Draft]:
    """What the gateway understands of each process' file and environment."""
    root = tmp_path_factory.mktemp("pods")
    pods = {
        name: PodFiles(root / name, process, rendered, _any_secret())
        for name, process in rendered.processes.items()
    }
    return {name: read_whole(files.config_file, files.env) for name, files in pods.items()}


def _any_secret(**known: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Secrets of every name: those that are known, and others with every entry that may be asked for."""
    plain = ("secret", "password", "sluice", "sentinel", "accessKeyId", "secretAccessKey")
    entries = dict.fromkeys(
        (*plain, "tls.crt", "tls.key", "ca.crt", "both.pem"), "of no meaning, but long enough for a key"
    )
    whole = {**entries, **new_keys()}
    return defaultdict(lambda: whole, known)


def test_the_gateway_takes_every_process_as_the_chart_starts_it(drafts, way):
    for name, draft in drafts.items():
        assert draft.faults == (), name
        unexpected = [each for each in draft.warnings if not each.startswith(WARNINGS.get(way, ()))]
        assert unexpected == [], name


def test_each_service_runs_in_one_process_and_edges_reach_the_others(drafts):
    configs = {name: draft.config for name, draft in drafts.items() if draft.config}
    run = [service for config in configs.values() for service in config.services.run]
    assert sorted(run) == sorted(ServiceName)
    for config in configs.values():
        if ServiceName.EDGE in config.services.run:
            assert set(config.services.addresses) == set(ServiceName) - set(config.services.run)


def test_each_process_is_given_the_keys_of_its_services_and_no_others(drafts, rendered):
    for name, draft in drafts.items():
        assert draft.config is not None
        run = draft.config.services.run
        wanted = {purpose.value for service in run for purpose in PURPOSES[service]}
        wanted |= {"grantPrivateKey"} if GRANT_SIGNER in run else set()
        wanted |= set() if GRANT_VERIFIERS.isdisjoint(run) else {"grantPublicKey"}
        derived = "SLUICE_KEYS_CURRENT_SECRET_FILE" in env_of(rendered.processes[name])
        assert _keys_in(rendered, name, "current") == ({"secret"} if derived else wanted)
        assert _keys_in(rendered, name, "previous") <= wanted - {"grantPrivateKey"}


def test_only_processes_that_issue_know_redis_and_all_of_them_do(rendered, way):
    processes = {name: env_of(process) for name, process in rendered.processes.items()}
    with_redis = {name for name, env in processes.items() if any("CACHE_REDIS" in key for key in env)}
    issuing = {
        name
        for name, env in processes.items()
        if {"presign", "vending"}.intersection(env["SLUICE_SERVICES_RUN"].split(","))
    }
    assert issuing
    # Every example has one.
    assert with_redis == (issuing if way in EXAMPLES else set())


def test_the_pipeline_has_none_of_the_gateways_keys_and_the_gateway_takes_its_settings(tmp_path):
    schedules = {"usage": {"schedule": "0 * * * *"}, "worker": {"schedule": "0 * * * *"}}
    rendered = render("aws", values={"pipeline": {"cronJobs": schedules}})
    workloads = [*rendered.of("CronJob").values(), *rendered.of("Deployment").values()]
    pipeline = [each for each in workloads if "-pipeline-" in each["metadata"]["name"]]
    assert len(pipeline) == 3
    for number, workload in enumerate(pipeline):
        files = PodFiles(tmp_path / str(number), workload, rendered, {})
        assert read_whole(files.config_file, files.env).faults == ()
        assert not any("KEYS" in key or "REDIS" in key for key in env_of(workload))


def test_keys_that_are_made_as_the_page_says_are_taken(tmp_path):
    section = (ROOT / "docs" / "kubernetes.md").read_text().partition("\n## Keys\n")[2]
    steps = [line.strip() for line in section.splitlines() if line.startswith("    ") and "openssl" in line]
    assert len(steps) == 3
    made = tmp_path / "made"
    made.mkdir()
    subprocess.run(["/bin/sh", "-ec", "\n".join(steps)], cwd=made, check=True, capture_output=True)
    keys = {file.name: file.read_text() for file in made.iterdir()}
    rendered = render()
    for name, process in rendered.processes.items():
        files = PodFiles(tmp_path / name, process, rendered, _any_secret(**{"sluice-keys": keys}))
        assert read_whole(files.config_file, files.env).faults == ()


def test_the_single_token_is_taken_from_a_secret_as_the_page_says(tmp_path):
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    (shown,) = [block for block in page.split("```") if "BEARER_TOKEN_FILE" in block]
    rendered = render(values=yaml.safe_load(shown.removeprefix("yaml")))
    secrets = _any_secret(**{"my-secret": {"token": "slc_0123456789abcdefghijklmnopqrstuvwxyz"}})
    files = PodFiles(tmp_path, rendered.processes["catalog"], rendered, secrets)
    draft = read_whole(files.config_file, files.env)
    assert draft.faults == ()
    assert draft.config is not None
    assert draft.config.authorization is not None


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_a_file_that_something_else_keeps_takes_the_place_of_the_charts_own(kind):
    rendered = render(values={"existingConfig": {"kind": kind, "name": "catalog", "key": "file.yaml"}})
    assert rendered.of("ConfigMap") == {}
    for process in rendered.processes.values():
        (volume,) = [each for each in pod(process)["volumes"] if each["name"] == "config"]
        source = volume["configMap"] if kind == "ConfigMap" else volume["secret"]
        assert "catalog" in (source.get("name"), source.get("secretName"))
        assert source["items"] == [{"key": "file.yaml", "path": "server.yaml"}]


def test_a_process_own_identity_is_in_its_own_file_only():
    files = {
        name: yaml.safe_load(each["data"]["server.yaml"])
        for name, each in render("aws").of("ConfigMap").items()
        if "server.yaml" in each["data"]
    }
    roles = {
        name: next(each for each in content["storages"] if each["name"] == "lake")["options"]["identity"][
            "roleArn"
        ]
        for name, content in files.items()
    }
    assert roles["sluice-presign"].endswith("/sluice-presign")
    assert roles["sluice-vending"].endswith("/sluice-vending")
    assert roles["sluice-snapshot"].endswith("/sluice-snapshot")
    # Nobody may assume this one: neither the edge nor the catalog opens a table.
    assert roles["sluice-edge"] == roles["sluice-catalog"] == "arn:aws:iam::111122223333:role/sluice-none"


def test_a_change_of_shares_restarts_nobody_and_one_of_limits_of_memory_does():
    def checksums(config: dict[str, Any]) -> set[str]:
        processes = render(values={"config": config}).processes.values()
        return {
            each["spec"]["template"]["metadata"]["annotations"]["sluice/config-checksum"]
            for each in processes
        }

    assert checksums({"shares": [{"name": "sales"}]}) == checksums({})
    assert checksums({"snapshots": {"memory": "1GiB"}}) != checksums({})


def _keys_in(rendered: Rendered, name: str, generation: str) -> set[str]:
    volumes = rendered.processes[name]["spec"]["template"]["spec"]["volumes"]
    (keys,) = [volume for volume in volumes if volume["name"] == "keys"]
    paths = [Path(item["path"]) for each in keys["projected"]["sources"] for item in each["secret"]["items"]]
    return {path.name for path in paths if path.parent.name == generation}
