"""The image's Dockerfile executed, and what came of it run as a container would be."""

from __future__ import annotations

import json
import os
import secrets
import signal
import stat
import subprocess

import pytest
import yaml

from deploy.engine.container import Container
from deploy.engine.image import name_of
from deploy.image.prove import size_of
from gateway.commands.bearer import hash_of
from tests.components import IMAGE
from tests.repository import ROOT
from tests.stores.process import running

pytestmark = [pytest.mark.system, pytest.mark.component(IMAGE)]

# What the image may grow to before somebody looks why: the layers on top of the base, on disk.
LARGEST = 300e6
TOKEN = "slc_reader"


@pytest.fixture
def run(image, image_folder):
    """Run a command of the image to its end."""

    def finished(*command, **options):
        container = Container(
            image=image, root=image_folder / "b" / "mnt", command=command, tmpfs=["/tmp"], **options
        )
        return subprocess.run(
            container.command_line(), capture_output=True, text=True, check=False, timeout=120
        )

    return finished


@pytest.fixture
def network():
    """A network of nobody else's, so that every port is free."""
    name = f"sluice-{secrets.token_hex(4)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture
def configuration(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    file = tmp_path / "server.yaml"
    settings = {
        "shares": [
            {"name": "s", "schemas": [{"name": "d", "tables": [{"name": "t", "location": "/lake/t"}]}]}
        ],
        "storages": [{"name": "lake", "prefix": "/lake", "vendor": "local"}],
        "recipients": [{"name": "reader", "shares": ["s"], "tokens": [{"hash": hash_of(TOKEN)}]}],
    }
    file.write_text(yaml.safe_dump(settings))
    return file


def files_of(image, place):
    """Yield every file of the image's own layers below a place."""
    for layer in image.layers[:-1]:
        folder = layer / name_of("") / place
        yield from (path for path in folder.rglob("*") if not path.is_symlink())


def test_the_command_runs_as_another_user_with_no_rights_on_a_tree_that_cannot_be_written(run):
    script = "id -u; grep CapBnd /proc/self/status; grep NoNewPrivs /proc/self/status; touch /opt/sluice/x"
    done = run("-c", script, entrypoint=["sh"])
    assert done.stdout.split() == ["10001", "CapBnd:", "0000000000000000", "NoNewPrivs:", "1"]
    assert "Read-only file system" in done.stderr


def test_it_says_its_version_and_has_every_vendor(run):
    done = run("version")
    assert done.stderr == ""
    assert "vendors: aws, azure, gcp, local, r2, s3\n" in done.stdout


def test_every_vendor_and_service_can_be_imported_after_slimming(run):
    modules = [f"vendors.{name}" for name in ("aws", "azure", "gcp", "local", "r2", "s3")]
    modules += [
        "gateway.bootstrap",
        "gateway.bootstrap.edge",
        "gateway.bootstrap.snapshot",
        "gateway.bootstrap.storages",
        "gateway.bootstrap.supervisor",
        "gateway.config.views.compiling",
        "gateway.services.catalog.servicer",
        "gateway.services.presign.servicer",
        "gateway.services.vending.servicer",
        "gateway.demo.embedded_s3",
        "redis.asyncio",
        "uvloop",
    ]
    sdk = "import botocore.session; [botocore.session.Session().create_client(n, 'us-east-1') for n in "
    sdk += "('s3', 'sts', 'iam', 'sso', 'sso-oidc')]"
    done = run("-c", f"import {', '.join(modules)}; {sdk}", entrypoint=["python"])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_configuration_is_checked_in_it(run, configuration):
    done = run("check-config", "/tmp/server.yaml", read_only={"/tmp/server.yaml": configuration})
    assert done.returncode == 0, done.stdout
    assert "/tmp/server.yaml is fine." in done.stdout


@pytest.mark.parametrize("uid", [10001, 54321])
def test_it_serves_as_any_user_is_found_healthy_and_stops_when_asked(
    image, image_folder, configuration, network, tmp_path, uid
):
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, uid, uid)
    places = {"/etc/sluice/server.yaml": configuration, "/lake": tmp_path / "lake"}
    container = Container(
        image=image.with_places(tmp_path / "places", places),
        root=image_folder / "b" / "mnt",
        user=f"{uid}:{uid}",
        tmpfs=["/tmp"],
        read_only=places,
        writable={"/var/lib/sluice": state},
        network=network,
    )

    def is_healthy():
        check = subprocess.run(container.health_command_line(), capture_output=True, check=False)
        return check.returncode == 0

    log_file = tmp_path / "log"

    def is_ready():
        # Cheaper than a health check, which starts a container.
        return '"serving ' in log_file.read_text() and is_healthy()

    assert not is_healthy()
    with running(container.command_line(), log_file=log_file, ready=is_ready) as server:
        server.process.send_signal(signal.Signals[image.settings.stop_signal])
        assert server.process.wait(120) == 0
    # A key of its own, as the configuration has none.
    assert [file.stat().st_uid for file in state.iterdir()] == [uid] * len(list(state.iterdir())) != []


def test_nothing_of_the_code_can_be_written_by_who_runs_it(image):
    paths = list(files_of(image, "opt"))
    assert len(paths) > 1000
    odd = [path for path in paths if path.stat().st_uid != 0 or path.stat().st_mode & 0o6022]
    assert not odd


def test_only_the_state_is_the_users(image):
    own = [layer / name_of("var") / "lib" / "sluice" for layer in image.layers]
    status = next(path.stat() for path in own if path.exists())
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (10001, 0o770)


def test_nothing_that_installs_or_builds_is_left(run):
    names = ["pip", "setuptools", "wheel", "ensurepip", "tkinter", "idlelib"]
    code = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])"
    assert run("-c", code, entrypoint=["python"]).stdout == "[]\n"


def test_every_module_is_compiled_in_a_way_that_no_clock_undoes(image):
    sources = [path for path in files_of(image, "opt") if path.suffix == ".py"]
    compiled = {path.name.split(".")[0] for path in files_of(image, "opt") if path.suffix == ".pyc"}
    bare = [path for path in sources if path.stem not in compiled]
    assert len(sources) > 1000
    assert not bare
    # Flags of a pyc that is checked against nothing.
    assert {path.read_bytes()[4:8] for path in files_of(image, "opt") if path.suffix == ".pyc"} == {
        b"\x01\x00\x00\x00"
    }


def test_the_image_is_as_small_as_the_docs_say(image):
    size = sum(size_of(layer) for layer in image.layers[:-1])
    said = (ROOT / "docs" / "image.md").read_text()
    assert size < LARGEST
    (megabytes,) = (
        line.split("**")[1] for line in said.splitlines() if line.startswith("| on top of the base")
    )
    assert abs(float(megabytes.removesuffix(" MB")) - size / 1e6) < 15


def test_the_bill_of_materials_names_what_is_installed_and_where_it_came_from(run):
    bom = json.loads(run("/opt/sluice/sbom.cdx.json", entrypoint=["cat"]).stdout)
    code = "from importlib.metadata import distributions as d; print(*sorted(x.name.lower() for x in d()))"
    installed = set(run("-c", code, entrypoint=["python"]).stdout.replace("_", "-").split())
    components = {entry["name"].lower().replace("_", "-"): entry for entry in bom["components"]}
    base = components.pop("python")
    own = bom["metadata"]["component"]
    assert (base["type"], base["version"]) == ("container", "3.11.14-slim-bookworm")
    assert own["name"] == "sluice-gateway"
    assert {*components, own["name"]} == installed
    assert all(entry["purl"].startswith("pkg:pypi/") for entry in components.values())
    assert all(entry["hashes"][0]["alg"] == "SHA-256" for entry in components.values())
    without = [name for name, entry in components.items() if not entry.get("licenses")]
    assert not without


def test_the_labels_say_what_it_is(image):
    labels = image.settings.labels
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels["org.opencontainers.image.base.name"] == "docker.io/library/python:3.11.14-slim-bookworm"
