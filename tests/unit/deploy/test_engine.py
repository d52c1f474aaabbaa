"""What an engine's stand-in would have Linux do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deploy.engine.container import Container
from deploy.engine.image import Image, Settings
from deploy.engine.network import Attachment, Member, Networks


@pytest.fixture
def image(tmp_path):
    base = {"": Path("/skeleton"), "usr": Path("/usr"), "usr/local": Path("/python")}
    settings = Settings(
        user="10001:10001", entrypoint=("sluice",), cmd=("serve",), healthcheck=("sluice", "health")
    )
    return Image(base, (tmp_path / "new", tmp_path / "old"), settings)


def words(container):
    return container.command_line()[-1].splitlines()[-1]


def test_layers_lie_over_each_other_the_newest_on_top_and_part_by_part(image, tmp_path):
    root, usr, local = image.mounts(Path("/mnt"))
    assert f"lowerdir={tmp_path}/new/root:{tmp_path}/old/root:/skeleton" in root
    assert usr.endswith(" /mnt/usr")
    assert f"{tmp_path}/new/usr-local:{tmp_path}/old/usr-local:/python" in local


def test_without_an_upper_layer_nothing_can_be_written(image, tmp_path):
    assert not any("upperdir" in line for line in image.mounts(Path("/mnt")))
    assert all("upperdir" in line for line in image.mounts(Path("/mnt"), tmp_path))


def test_a_place_to_lay_a_file_over_is_made_in_the_part_that_it_belongs_to(image, tmp_path):
    places = {"/usr/local/bin/x": Path("/etc/hostname"), "/data": Path("/tmp")}
    placed = image.with_places(tmp_path / "places", places)
    assert placed.layers[0] == tmp_path / "places"
    assert (tmp_path / "places" / "usr-local" / "bin" / "x").is_file()
    assert (tmp_path / "places" / "root" / "data").is_dir()


def test_a_container_gives_up_all_rights_and_runs_what_its_image_says(image):
    line = words(Container(image=image, root=Path("/mnt")))
    assert "setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set -all" in line
    assert line.endswith(" sluice serve")


def test_a_container_is_told_another_user_command_and_environment(image):
    container = Container(image=image, root=Path("/mnt"), user="5", command=["version"], env={"A": "b c"})
    assert "--reuid 5 --regid 5 " in words(container)
    assert words(container).endswith(" 'A=b c' sluice version")


def test_a_folder_in_memory_is_roots_with_the_mode_of_what_it_is_laid_over(image, tmp_path):
    script = Container(image=image, root=tmp_path, tmpfs=["/state", "/new"]).command_line()[-1].splitlines()
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o770)
    lines = [line for line in script if "$mode" in line or "mode=$(" in line]
    spoken = "; ".join(lines).replace("mount -t", "echo mount -t")
    said = subprocess.run(["sh", "-euc", spoken], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        f"mount -t tmpfs -o mode=0770,nosuid,nodev,noexec tmpfs {tmp_path}/state",
        f"mount -t tmpfs -o mode=01777,nosuid,nodev,noexec tmpfs {tmp_path}/new",
    ]


def test_a_health_check_runs_in_the_surroundings_of_its_container(image):
    container = Container(image=image, root=Path("/mnt"), network="net", env={"A": "b"})
    line = container.health_command_line()
    assert line[:4] == ["ip", "netns", "exec", "net"]
    assert line[-1].splitlines()[-1].endswith(" A=b sluice health")


def test_names_are_known_on_shared_networks_only():
    edge = Member(
        "a",
        (
            Attachment("front", "10.0.0.2", frozenset({"edge"})),
            Attachment("inner", "10.1.0.2", frozenset({"edge"})),
        ),
    )
    presign = [Member("b", (Attachment("inner", f"10.1.0.{n}", frozenset({"presign"})),)) for n in (3, 4)]
    redis = Member("c", (Attachment("data", "10.2.0.2", frozenset({"redis"})),))
    networks = Networks("switch", {}, [edge, *presign, redis])
    assert networks.known_to("10.0.0.2") == {
        "edge": ["10.0.0.2", "10.1.0.2"],
        "presign": ["10.1.0.3", "10.1.0.4"],
    }
    assert networks.known_to("10.2.0.2") == {"redis": ["10.2.0.2"]}
    assert networks.known_to("10.9.9.9") == {}
