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
from tests.repository import ROOT

FOLDER = ROOT / "deploy" / "compose"
FILE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
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


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_another_user_with_no_rights_on_a_tree_that_cannot_be_written(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"].startswith("${SLUICE_USER:?")
    assert not {"privileged", "cap_add", "pid", "network_mode", "devices", "ipc"} & set(service)


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned(name):
    image = re.sub(r"\$\{\w+:-(.*)\}", r"\1", SERVICES[name]["image"])
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+(\.\d+)?(-[a-z]+)?", image)


def test_our_image_is_the_one_that_make_image_builds():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert {service["image"] for service in OWN.values()} == {f"${{SLUICE_IMAGE:-sluice:{version}}}"}


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_only(name):
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", ()))


@pytest.mark.parametrize("name", SERVICES)
def test_everybody_who_is_waited_for_can_be_found_healthy_or_ends(name):
    for other, wait in SERVICES[name].get("depends_on", {}).items():
        ends = SERVICES[other]["healthcheck"] == {"disable": True}
        assert wait == {"condition": "service_completed_successfully" if ends else "service_healthy"}
        assert ends or SERVICES[other]["healthcheck"]["test"][0] == "CMD"


def test_who_ends_by_itself_is_waited_for():
    ending = {name for name, service in SERVICES.items() if service["healthcheck"] == {"disable": True}}
    awaited = {other for service in SERVICES.values() for other in service.get("depends_on", {})}
    assert ending <= awaited


@pytest.mark.parametrize("name", SERVICES)
def test_everything_that_is_mounted_exists_or_is_made_by_prepare(name, generated):
    for source in sources(SERVICES[name]):
        made = source.removeprefix("./generated/")
        assert (generated / made if made != source else FOLDER / source).exists(), source


def test_every_secret_is_a_file_that_prepare_makes_for_nobody_else(generated):
    for name, secret in FILE["secrets"].items():
        file = generated / secret["file"].removeprefix("./generated/")
        assert file.stat().st_mode & 0o777 == 0o600, name
        assert file.read_text().strip(), name


def test_every_secret_is_somebodys_and_nobody_asks_for_another():
    wanted = set().union(*map(secrets_of, SERVICES.values()))
    assert wanted == set(FILE["secrets"])


@pytest.mark.parametrize("name", SERVING)
def test_a_process_has_the_keys_of_its_service_and_no_others(name):
    own = {re.sub("([A-Z])", r"-\1", purpose.value).lower() for purpose in PURPOSES[RUNS[name]]}
    own |= {"grant-private-key"} if RUNS[name] is GRANT_SIGNER else set()
    own |= {"grant-public-key"} if RUNS[name] in GRANT_VERIFIERS else set()
    keys = {key for key, secret in FILE["secrets"].items() if "/keys/" in secret["file"]}
    assert secrets_of(SERVING[name]) & keys == own


@pytest.mark.parametrize("name", SERVING)
def test_only_who_reads_signs_or_vends_is_somebody_in_the_store(name):
    held = {secret for secret in secrets_of(SERVING[name]) if "-store-" in secret}
    service = RUNS[name].value
    assert held == ({f"{service}-store-id", f"{service}-store-secret"} if service in POLICIES else set())


@pytest.mark.parametrize("name", SERVING)
def test_the_configuration_is_accepted_with_the_environment_of_each_process(name, generated, tmp_path):
    service = SERVING[name]
    where = {secret["target"]: FILE["secrets"][secret["source"]]["file"] for secret in service["secrets"]}

    def here(text):
        for target, source in where.items():
            text = text.replace(
                f"/run/secrets/{target}", str(generated / source.removeprefix("./generated/"))
            )
        return text

    file = tmp_path / "server.yaml"
    file.write_text(here((generated / "server.yaml").read_text()))
    draft = read_whole(file, {key: here(value) for key, value in service["environment"].items()})
    assert [str(fault) for fault in draft.faults] == []
    assert draft.config is not None
    assert draft.config.services.run == (RUNS[name],)
    # It has to be known by a warning that the cache's password goes over a network that nobody else is on.
    assert all("has no TLS" in warning for warning in draft.warnings), draft.warnings


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


@pytest.mark.parametrize("name", SERVING)
def test_a_process_may_take_longer_to_stop_than_it_drains_and_its_requests_finish(name):
    drain = seconds(SERVING[name]["environment"].get("SLUICE_DRAIN", "0s"))
    grace = Config.model_fields["grace"].default.total_seconds()
    assert seconds(SERVING[name]["stop_grace_period"]) > drain + grace


@pytest.mark.parametrize("name", [name for name, service in RUNS.items() if service is ServiceName.EDGE])
def test_an_edge_serves_on_until_envoy_has_asked_it_twice(name):
    envoy = yaml.safe_load((ROOT / "deploy" / "envoy" / "envoy.yaml").read_text())
    (check,) = envoy["static_resources"]["clusters"][0]["health_checks"]
    drain = seconds(SERVING[name]["environment"]["SLUICE_DRAIN"])
    assert drain > 2 * seconds(check["interval"])
    # Even if it takes as long to answer as it may: the next check begins behind the last one's end.
    assert drain >= seconds(check["interval"]) + seconds(check["timeout"])


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


@pytest.mark.parametrize("name", SERVICES)
def test_folders_in_memory_are_laid_over_what_everybody_may_write(name):
    # Over another, it would have that one's mode and be root's.
    assert set(SERVICES[name].get("tmpfs", ())) <= {"/tmp"}


@pytest.mark.parametrize("name", SERVING)
def test_a_process_can_write_its_state(name):
    service = SERVING[name]
    state = service["environment"].get("SLUICE_STATE_DIR", "/var/lib/sluice")
    written = {volume["target"] for volume in service["volumes"] if not volume.get("read_only")}
    assert state in written or any(state.startswith(f"{place}/") for place in service["tmpfs"])


def test_where_processes_write_there_is_a_folder(generated):
    assert all((generated / name).is_dir() for name in WRITTEN)
    assert (generated.parent / ".env").read_text().startswith("SLUICE_USER=")


def test_the_engine_that_health_checks_need_is_named_in_the_docs():
    asked = [name for name, service in SERVICES.items() if "start_interval" in service.get("healthcheck", {})]
    page = (ROOT / "docs" / "image.md").read_text().partition("## The compose stack")[2]
    assert asked
    assert "Docker Engine 25" in page.partition("\n## ")[0]
