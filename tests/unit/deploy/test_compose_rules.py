"""The rules that the compose file keeps, and that its configurations are accepted."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

from deploy.compose.prepare import REDIS_RIGHTS, WRITTEN, main
from deploy.compose.store import POLICIES
from gateway.adapters.config_check import read_whole
from gateway.config.purpose import GRANT_SIGNER, GRANT_VERIFIERS, PURPOSES
from gateway.config.schema import Config, ServiceName
from tests.problems import assert_none, place
from tests.repository import ROOT

FOLDER = ROOT / "deploy" / "compose"
COMPOSE = FOLDER / "compose.yaml"
FILE = yaml.safe_load(COMPOSE.read_text())
SERVICES = FILE["services"]
OWN = {name: service for name, service in SERVICES.items() if "build" in service}
SERVING = {name: service for name, service in OWN.items() if name != "sample"}
# Which of our services a process of the file runs.
RUNS = {name: ServiceName(service["environment"]["SLUICE_SERVICES_RUN"]) for name, service in SERVING.items()}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """What prepare.py makes, made elsewhere."""
    place = tmp_path_factory.mktemp("compose") / "generated"
    assert main(["--place", str(place)]) == 0
    return place


def sources(service):
    return [volume["source"] for volume in service.get("volumes", ())]


def secrets_of(service):
    return {secret["source"] for secret in service.get("secrets", ())}


def line_of(name):
    """Return where a service of the file begins, and its name."""
    return f"{place(COMPOSE, rf'^  {re.escape(name)}:')}: {name}"


def test_every_container_is_another_user_with_no_rights_on_a_tree_that_cannot_be_written():
    expected = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
    problems = []
    for name, service in SERVICES.items():
        wrong = {key: service.get(key) for key, value in expected.items() if service.get(key) != value}
        if not service.get("user", "").startswith("${SLUICE_USER:?"):
            wrong["user"] = service.get("user")
        for key in {"privileged", "cap_add", "pid", "network_mode", "devices", "ipc"} & set(service):
            wrong[key] = service[key]
        problems += [f"{line_of(name)} has {key}: {value}" for key, value in sorted(wrong.items())]
    assert_none(problems)


def test_every_image_is_pinned():
    images = {name: re.sub(r"\$\{\w+:-(.*)\}", r"\1", service["image"]) for name, service in SERVICES.items()}
    assert_none(
        f"{line_of(name)} has the image {image}, which names no version"
        for name, image in images.items()
        if not re.fullmatch(r"[\w./-]+:v?\d+\.\d+(\.\d+)?(-[a-z]+)?", image)
    )


def test_our_image_is_the_one_that_make_image_builds():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert {service["image"] for service in OWN.values()} == {f"${{SLUICE_IMAGE:-sluice:{version}}}"}


def test_ports_are_published_on_loopback_only():
    assert_none(
        f"{line_of(name)} publishes {port}"
        for name, service in SERVICES.items()
        for port in service.get("ports", ())
        if not port.startswith("127.0.0.1:")
    )


def test_everybody_who_is_waited_for_can_be_found_healthy_or_ends():
    problems = []
    for name, service in SERVICES.items():
        for other, wait in service.get("depends_on", {}).items():
            check = SERVICES[other]["healthcheck"]
            ends = check == {"disable": True}
            expected = {"condition": "service_completed_successfully" if ends else "service_healthy"}
            if wait != expected:
                problems.append(f"{line_of(name)} waits for {other} with {wait}, not {expected}")
            if not ends and check["test"][0] != "CMD":
                problems.append(f"{line_of(other)} has the health check {check['test']}, which is no CMD")
    assert_none(problems)


def test_who_ends_by_itself_is_waited_for():
    ending = {name for name, service in SERVICES.items() if service["healthcheck"] == {"disable": True}}
    awaited = {other for service in SERVICES.values() for other in service.get("depends_on", {})}
    assert ending <= awaited


def test_everything_that_is_mounted_exists_or_is_made_by_prepare(generated):
    problems = []
    for name, service in SERVICES.items():
        for source in sources(service):
            made = source.removeprefix("./generated/")
            if not (generated / made if made != source else FOLDER / source).exists():
                problems.append(f"{line_of(name)} mounts {source}, which does not exist")
    assert_none(problems)


def test_every_secret_is_a_file_that_prepare_makes_for_nobody_else(generated):
    problems = []
    for name, secret in FILE["secrets"].items():
        file = generated / secret["file"].removeprefix("./generated/")
        if not file.is_file():
            problems.append(f"{line_of(name)} is {secret['file']}, which does not exist")
            continue
        if (mode := file.stat().st_mode & 0o777) != 0o600:
            problems.append(f"{line_of(name)} is {secret['file']} with the mode {mode:o}")
        if not file.read_text().strip():
            problems.append(f"{line_of(name)} is {secret['file']}, which is empty")
    assert_none(problems)


def test_every_secret_is_somebodys_and_nobody_asks_for_another():
    wanted = set().union(*map(secrets_of, SERVICES.values()))
    assert wanted == set(FILE["secrets"])


def test_a_process_has_the_keys_of_its_service_and_no_others():
    keys = {key for key, secret in FILE["secrets"].items() if "/keys/" in secret["file"]}
    problems = []
    for name, service in SERVING.items():
        own = {re.sub("([A-Z])", r"-\1", purpose.value).lower() for purpose in PURPOSES[RUNS[name]]}
        own |= {"grant-private-key"} if RUNS[name] is GRANT_SIGNER else set()
        own |= {"grant-public-key"} if RUNS[name] in GRANT_VERIFIERS else set()
        held = secrets_of(service) & keys
        if held != own:
            problems.append(f"{line_of(name)} has {sorted(held)}, its service needs {sorted(own)}")
    assert_none(problems)


def test_only_who_reads_signs_or_vends_is_somebody_in_the_store():
    problems = []
    for name, service in SERVING.items():
        held = {secret for secret in secrets_of(service) if "-store-" in secret}
        run = RUNS[name].value
        own = {f"{run}-store-id", f"{run}-store-secret"} if run in POLICIES else set()
        if held != own:
            problems.append(f"{line_of(name)} has {sorted(held)}, its service needs {sorted(own)}")
    assert_none(problems)


def test_the_configuration_is_accepted_with_the_environment_of_each_process(generated, tmp_path):
    problems = []
    for name, service in SERVING.items():
        draft = read_as(name, service, generated, tmp_path)
        problems += [f"{line_of(name)}: {fault}" for fault in draft.faults]
        if draft.config is None or draft.config.services.run != (RUNS[name],):
            run = draft.config and draft.config.services.run
            problems.append(f"{line_of(name)} runs {run}, not {RUNS[name]}")
        # A warning has to say that the cache's password goes over a network, which nobody else is on.
        problems += [f"{line_of(name)}: {text}" for text in draft.warnings if "has no TLS" not in text]
    assert_none(problems)


def read_as(name, service, generated, folder):
    """Read the configuration with the secrets and the environment of a process."""
    where = {secret["target"]: FILE["secrets"][secret["source"]]["file"] for secret in service["secrets"]}

    def here(text):
        for target, source in where.items():
            text = text.replace(
                f"/run/secrets/{target}", str(generated / source.removeprefix("./generated/"))
            )
        return text

    file = folder / f"{name}.yaml"
    file.write_text(here((generated / "server.yaml").read_text()))
    return read_whole(file, {key: here(value) for key, value in service["environment"].items()})


def test_every_service_runs_and_presign_more_than_once():
    assert set(RUNS.values()) == set(ServiceName)
    assert SERVICES["presign"]["deploy"]["replicas"] >= 2


def test_edges_and_catalog_are_not_where_the_data_is():
    networks = {name: set(service["networks"]) for name, service in SERVICES.items()}
    assert {name for name, own in networks.items() if "data" in own} == {
        *("redis", "sample", "seaweedfs", "snapshot", "presign", "vending")
    }
    assert networks["envoy"] == {"front"}
    assert {name for name, own in networks.items() if "store" in own} == {"seaweedfs"}
    assert FILE["networks"]["data"] == FILE["networks"]["inner"] == {"internal": True}


def test_envoy_is_told_the_edges_addresses_and_they_believe_its():
    addresses = {SERVICES[name]["networks"]["front"]["ipv4_address"] for name in ("edge-1", "edge-2")}
    text = (FOLDER / "edges.yaml").read_text()
    assert set(re.findall(r"address: (10[\d.]+)", text)) == addresses
    config = yaml.safe_load((FOLDER / "server.yaml").read_text())
    assert config["http"]["trustedProxies"] == [
        f"{SERVICES['envoy']['networks']['front']['ipv4_address']}/32"
    ]


def test_a_process_may_take_longer_to_stop_than_it_drains_and_its_requests_finish():
    grace = Config.model_fields["grace"].default.total_seconds()
    problems = []
    for name, service in SERVING.items():
        least = seconds(service["environment"].get("SLUICE_DRAIN", "0s")) + grace
        if seconds(service["stop_grace_period"]) <= least:
            given = service["stop_grace_period"]
            problems.append(f"{line_of(name)} has stop_grace_period: {given}, but needs more than {least:g}s")
    assert_none(problems)


def test_an_edge_serves_on_until_envoy_has_asked_it_twice():
    envoy = yaml.safe_load((ROOT / "deploy" / "envoy" / "envoy.yaml").read_text())
    (check,) = envoy["static_resources"]["clusters"][0]["health_checks"]
    interval, timeout = seconds(check["interval"]), seconds(check["timeout"])
    edges = [name for name, service in RUNS.items() if service is ServiceName.EDGE]
    drains = {name: seconds(SERVING[name]["environment"].get("SLUICE_DRAIN", "0s")) for name in edges}
    assert drains
    assert_none(
        f"{line_of(name)} drains for {drain}s; Envoy checks every {interval}s with a timeout of {timeout}s"
        for name, drain in drains.items()
        # Even if it takes as long to answer as it may: the next check begins behind the last one's end.
        if not (drain > 2 * interval and drain >= interval + timeout)
    )


def seconds(text):
    return int(text.removesuffix("s"))


def test_redis_gives_the_cache_what_the_docs_say_it_needs_and_a_ping():
    said = re.search(
        r"ACL SETUSER sluice on >PASSWORD resetkeys (.*)", (ROOT / "docs" / "cache.md").read_text()
    )
    assert said
    assert f"{said[1]} +ping" == REDIS_RIGHTS


def test_what_was_prepared_is_kept_until_it_is_to_be_made_anew(generated, capsys):
    token = (generated / "acme.share").read_text()
    assert main(["--place", str(generated)]) == 1
    assert "--force" in capsys.readouterr().err
    assert (generated / "acme.share").read_text() == token


def test_folders_in_memory_are_laid_over_what_everybody_may_write():
    # Over another, it would have that one's mode and be root's.
    assert_none(
        f"{line_of(name)} has a tmpfs at {path}"
        for name, service in SERVICES.items()
        for path in service.get("tmpfs", ())
        if path != "/tmp"
    )


def test_a_process_can_write_its_state():
    problems = []
    for name, service in SERVING.items():
        state = service["environment"].get("SLUICE_STATE_DIR", "/var/lib/sluice")
        written = {volume["target"] for volume in service["volumes"] if not volume.get("read_only")}
        if state not in written and not any(state.startswith(f"{path}/") for path in service["tmpfs"]):
            problems.append(f"{line_of(name)} has its state in {state}, which it cannot write")
    assert_none(problems)


def test_where_processes_write_there_is_a_folder(generated):
    assert all((generated / name).is_dir() for name in WRITTEN)
    assert (generated.parent / ".env").read_text().startswith("SLUICE_USER=")


def test_the_engine_that_health_checks_need_is_named_in_the_docs():
    asked = [name for name, service in SERVICES.items() if "start_interval" in service.get("healthcheck", {})]
    page = (ROOT / "docs" / "image.md").read_text().partition("## The compose stack")[2]
    assert asked
    assert "Docker Engine 25" in page.partition("\n## ")[0]
