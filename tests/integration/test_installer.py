"""The installer of programs for tests, with programs of our own in the place of go, npm and apt."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.repository import ROOT

INSTALLER = ROOT / "deploy" / "dev" / "components.py"

GO = """#!/bin/sh
echo "go $*" >> "$CALLS"
mkdir -p "$GOBIN" && echo program > "$GOBIN/server"
"""
NPM = """#!/bin/sh
echo "npm $*" >> "$CALLS"
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/azurite/dist/src/blob"
echo program > "$2/node_modules/azurite/dist/src/blob/main.js"
"""
BROKEN = """#!/bin/sh
mkdir -p "$GOBIN" && echo half > "$GOBIN/server"
echo "no such module" >&2
exit 1
"""
EMPTY = """#!/bin/sh
exit 0
"""
# Builds what it is told to, and for long enough that another installer meets it.
SLOW = """#!/bin/sh
echo "go $*" >> "$CALLS"
while [ "$1" != -o ]; do shift; done
mkdir -p "${2%/*}" && echo program > "$2"
/bin/sleep 1
"""


class Installer:
    """Runs the installer with nothing on its PATH but what a test puts there."""

    def __init__(self, directory):
        self.cache = directory / "cache" / "sluice" / "components"
        self.calls = directory / "calls"
        self.calls.touch()
        self._programs = directory / "programs"
        self._programs.mkdir()
        for name in ("sh", "mkdir", "echo"):
            (self._programs / name).symlink_to(f"/bin/{name}")
        home = str(directory / "cache")
        self._env = {"PATH": str(self._programs), "XDG_CACHE_HOME": home, "CALLS": str(self.calls)}

    def __call__(self, *arguments, **scripts):
        for name, text in scripts.items():
            (self._programs / name).write_text(text)
            (self._programs / name).chmod(0o755)
        command = [sys.executable, str(INSTALLER), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self._env)


@pytest.fixture
def install(tmp_path):
    return Installer(tmp_path)


def test_a_go_program_is_installed_once_and_its_cost_is_told(install):
    first = install("toxiproxy", go=GO)
    assert first.returncode == 0
    assert "1 of 1 toxiproxy: installing, about 30 seconds the first time" in first.stdout
    assert "1 of 1 toxiproxy: installed in 0 s" in first.stdout
    (call,) = install.calls.read_text().splitlines()
    assert call.startswith("go install ")
    assert call.endswith(" github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0")
    again = install("toxiproxy")
    assert "1 of 1 toxiproxy is there" in again.stdout
    assert install.calls.read_text().count("go install") == 1
    where = install("--where", "toxiproxy")
    assert where.stdout.strip() == str(install.cache / "toxiproxy-2.5.0" / "bin" / "server")


def test_a_node_program_is_installed_without_a_lock_file(install):
    assert install("azurite", npm=NPM).returncode == 0
    assert "--no-package-lock --loglevel=error --ignore-scripts" in install.calls.read_text()
    assert install("--where", "azurite").stdout.strip().endswith("/azurite/dist/src/blob/main.js")


def test_a_program_that_go_install_refuses_is_built_in_a_module_of_ours(install):
    assert install("kube-scheduler", go=SLOW).returncode == 0
    call = install.calls.read_text()
    assert call.startswith(f"go build -C {ROOT / 'deploy' / 'dev' / 'go' / 'kubernetes'} ")
    assert "version.gitVersion=v1.36.3" in call
    assert call.endswith(" k8s.io/kubernetes/cmd/kube-scheduler\n")


def test_two_installers_at_once_install_once(install):
    install("nginx", go=SLOW)
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(install, ["etcd", "etcd"]))
    assert [result.returncode for result in results] == [0, 0]
    assert install.calls.read_text().count("go build") == 1
    assert any("another process has installed it" in result.stdout for result in results)


def test_a_group_is_all_of_its_programs(install):
    result = install("kubernetes", go=EMPTY)
    assert "1 of 7 helm3: installing" in result.stdout
    assert "7 of 7 kwok: installing" in result.stdout
    assert "minio" not in result.stdout


@pytest.mark.parametrize(("name", "needs"), [("minio", "go"), ("azurite", "npm")])
def test_a_missing_builder_is_named(install, name, needs):
    result = install(name)
    assert result.returncode == 1
    assert f"components: {name} needs `{needs}` on the PATH, and it is not there" in result.stderr


def test_a_failed_build_tells_why_and_leaves_nothing(install):
    result = install("toxiproxy", go=BROKEN)
    assert result.returncode == 1
    assert "failed:\nno such module" in result.stderr
    assert list(install.cache.iterdir()) == []
    assert install("--where", "toxiproxy").returncode == 1


def test_a_build_without_its_program_is_a_failure(install):
    result = install("toxiproxy", go=EMPTY)
    assert result.returncode == 1
    assert "brought no bin/server" in result.stderr


def test_one_failure_does_not_stop_the_others(install):
    result = install("minio", "toxiproxy", "azurite", npm=NPM, go=GO)
    assert result.returncode == 1
    assert "brought no bin/minio" in result.stderr
    assert "2 of 3 toxiproxy: installed" in result.stdout
    assert "3 of 3 azurite: installed" in result.stdout


def test_redis_is_told_how_to_install_where_there_is_no_package_manager(install):
    result = install("redis")
    assert result.returncode == 1
    assert "install `redis-server` with your system's package manager" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may call apt-get")
def test_redis_comes_by_apt_for_root(install):
    script = '#!/bin/sh\necho "apt-get $*" >> "$CALLS"\n'
    result = install("redis", **{"apt-get": script})
    assert "redis: it was installed, but redis-server is not there" in result.stderr
    assert install.calls.read_text().startswith("apt-get install -y --no-install-recommends redis-server\n")


def test_an_unknown_name_is_a_mistake(install):
    result = install("postgres")
    assert result.returncode == 2
    assert "invalid choice: 'postgres'" in result.stderr


def test_cache_that_another_user_may_write_to_is_refused(install):
    install.cache.mkdir(parents=True)
    install.cache.chmod(0o777)

    done = install("toxiproxy", go=GO)

    assert done.returncode == 1
    assert f"another user may write to {install.cache}" in done.stderr
    assert install.calls.read_text() == ""
